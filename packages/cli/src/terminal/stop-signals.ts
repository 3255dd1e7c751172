import { constants } from 'node:os';

type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

/** With SIGHUP: a terminal that is closed also stops a command in good order. */
export const ALL_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The exit code of a process that a signal ended. */
export const codeOf = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];

/**
 * The first signal calls `onStop`, which stops in good order. The second calls `onHard` and ends the process when that
 * has settled. A third ends the process at once.
 * @returns removes the listeners
 */
export function onStopSignals(
  onStop: (signal: NodeJS.Signals) => void,
  onHard: () => void | Promise<void> = () => {},
  signals: readonly StopSignal[] = ['SIGINT', 'SIGTERM'],
): () => void {
  let asked = 0;
  const listener = (signal: NodeJS.Signals) => {
    asked += 1;
    if (asked === 1) return onStop(signal);
    const end = () => process.exit(codeOf(signal));
    const ending = asked === 2 ? onHard() : undefined;
    if (ending) void ending.finally(end);
    else end();
  };
  for (const signal of signals) process.on(signal, listener);
  return () => {
    for (const signal of signals) process.off(signal, listener);
  };
}
