import { constants } from 'node:os';

/**
 * SIGINT and SIGTERM, or `signals`: the first asks to stop in good order, the second ends the process at once.
 * `onHard` runs before that end.
 */
export function onStopSignals(
  onStop: (signal: NodeJS.Signals) => void,
  onHard: () => void = () => {},
  signals: readonly ('SIGINT' | 'SIGTERM' | 'SIGHUP')[] = ['SIGINT', 'SIGTERM'],
): () => void {
  let asked = false;
  const listener = (signal: NodeJS.Signals) => {
    if (asked) {
      onHard();
      process.exit(128 + constants.signals[signal]);
    }
    asked = true;
    onStop(signal);
  };
  for (const signal of signals) process.on(signal, listener);
  return () => {
    for (const signal of signals) process.off(signal, listener);
  };
}
