import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { vi } from 'vitest';
import type { Trace } from '../support/trace.js';

/**
 * The histories of test files, by file and name, unplayed: the files are loaded with a `playTraces` that plays nothing
 * and remembers. Each can be loaded once; a second time it would report nothing.
 */
export async function historiesOf(
  tests: Iterable<string>,
): Promise<ReadonlyMap<string, Readonly<Record<string, Trace>>>> {
  const found = new Map<string, Record<string, Trace>>();
  let histories: Record<string, Trace> = {};
  vi.doMock('../support/trace.js', () => ({
    playTraces: (_: string, traces: Record<string, Trace>) => Object.assign(histories, traces),
  }));
  for (const test of new Set(tests)) {
    histories = {};
    await import(pathToFileURL(resolve(test)).href);
    found.set(test, histories);
  }
  vi.doUnmock('../support/trace.js');
  return found;
}
