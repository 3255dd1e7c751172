import { type BigIntStats, fstatSync, statSync } from 'node:fs';

/*
 * After a stat of a pipe, Node 20 resolves modules that are loaded later from wrong paths: its loader reads what that
 * stat left behind. Big integers are left elsewhere. Commands load modules when they need them, so they use these.
 * `realpathSync` does such a stat as well, `realpathSync.native` does not.
 */

/** @throws what `statSync` throws */
export const statOf = (path: string): BigIntStats => statSync(path, { bigint: true });

/** Undefined: nothing can be found there. */
export const statIfAny = (path: string): BigIntStats | undefined => ifAny(() => statOf(path));

/** Of standard input or standard output; undefined: it is closed. */
export const statOfStream = (stream: 0 | 1): BigIntStats | undefined =>
  ifAny(() => fstatSync(stream, { bigint: true }));

/** Whether a folder above the path may not be searched, so that nobody can say whether it is there. */
export function isHidden(path: string): boolean {
  try {
    statOf(path);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES';
  }
}

function ifAny(stat: () => BigIntStats): BigIntStats | undefined {
  try {
    return stat();
  } catch {
    return undefined;
  }
}
