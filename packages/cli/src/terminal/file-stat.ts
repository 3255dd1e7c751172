import { type BigIntStats, fstatSync, statSync } from 'node:fs';

/*
 * After a stat of a pipe, Node 20 resolves modules that are loaded later from wrong paths: its loader reads what that
 * stat left behind. Big integers are left elsewhere. Commands load modules when they need them, so they use these, and
 * `realpathSync.native` in place of `realpathSync`, which does such a stat.
 */

/** @throws what `statSync` throws */
export const statOf = (path: string): BigIntStats => statSync(path, { bigint: true });

/** Undefined: there is nothing. */
export const statIfAny = (path: string): BigIntStats | undefined =>
  statSync(path, { bigint: true, throwIfNoEntry: false });

/** Of standard output. @throws what `fstatSync` throws */
export const statOfOutput = (): BigIntStats => fstatSync(1, { bigint: true });

/** Names a regular file, whatever paths and links lead to it. undefined: it is none. */
export const fileIdOf = (stat: BigIntStats | undefined): string | undefined =>
  stat?.isFile() ? `${stat.dev} ${stat.ino}` : undefined;

/** Of standard input. @throws what `fstatSync` throws */
export const statOfInput = (): BigIntStats => fstatSync(0, { bigint: true });
