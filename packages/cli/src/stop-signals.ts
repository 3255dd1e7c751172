import { constants } from 'node:os';

type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

/** A terminal that is closed stops in good order too: nobody may look for what is left by that. */
export const ALL_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The exit code of a process that a signal ended. */
export const codeOf = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];

/**
 * SIGINT and SIGTERM, or `signals`: the first asks to stop in good order, the second ends the process, at once or when
 * `onHard` is over. A third does not wait for that.
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
