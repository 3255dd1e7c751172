import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** How a process ended, and all that it said. */
export interface Finished {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A process that is listened to from its start. */
export interface Heard {
  readonly child: ChildProcess;
  /** What it has said so far. */
  readonly said: { stdout: string; stderr: string };
  readonly finished: Promise<Finished>;
}

/** Listens to a process whose outputs are pipes. */
export function listen(child: ChildProcess): Heard {
  const said = { stdout: '', stderr: '' };
  for (const output of ['stdout', 'stderr'] as const) {
    child[output]?.setEncoding('utf8').on('data', (text: string) => {
      said[output] += text;
    });
  }
  const finished = once(child, 'close').then(([code]) => ({
    code: code as number | null,
    ...said,
  }));
  return { child, said, finished };
}
