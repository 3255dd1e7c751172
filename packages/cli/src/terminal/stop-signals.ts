import { constants } from 'node:os';
import { watchNpm } from './launcher.js';
import { say } from './print.js';

type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

/** With SIGHUP: a terminal that is closed also stops a command in good order. */
export const ALL_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * For so long after a signal, another one of the same kind is the same Ctrl-C: a terminal signals all its processes, and
 * npm and npx pass their signal on to the command that they started; in ms.
 */
const SAME_MS = 500;

/** The exit code of a process that a signal ended. */
export const codeOf = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];

/**
 * The first signal calls `onStop`, which stops in good order. The second calls `onHard` and ends the process when that
 * has settled. A third ends the process at once. The end of the npx or npm that started the command is a SIGTERM.
 * @param onNpmGone says why the command stops without a signal
 * @returns removes the listeners
 */
export function onStopSignals(
  onStop: (signal: NodeJS.Signals) => void,
  onHard: () => void | Promise<void> = () => {},
  signals: readonly StopSignal[] = ['SIGINT', 'SIGTERM'],
  onNpmGone = () => say('the npx or npm that started this command has ended; it stops'),
): () => void {
  let asked = 0;
  let last: { signal: NodeJS.Signals; atMs: number } | undefined;
  const listener = (signal: NodeJS.Signals) => {
    const atMs = performance.now();
    // cure: one Ctrl-C that arrives twice is one
    if (last?.signal === signal && atMs - last.atMs < SAME_MS) return;
    last = { signal, atMs };
    asked += 1;
    if (asked === 1) return onStop(signal);
    const end = () => process.exit(codeOf(signal));
    const ending = asked === 2 ? onHard() : undefined;
    if (ending) void ending.finally(end);
    else end();
  };
  for (const signal of signals) process.on(signal, listener);
  const unwatch = watchNpm(() => {
    onNpmGone();
    listener('SIGTERM');
  });
  return () => {
    unwatch();
    for (const signal of signals) process.off(signal, listener);
  };
}
