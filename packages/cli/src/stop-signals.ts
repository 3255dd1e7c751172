/**
 * SIGINT and SIGTERM: the first asks to stop in good order, the second ends the process at once.
 * `onHard` runs before that end.
 */
export function onStopSignals(
  onStop: (signal: NodeJS.Signals) => void,
  onHard: () => void = () => {},
): () => void {
  let asked = false;
  const listener = (signal: NodeJS.Signals) => {
    if (asked) {
      onHard();
      process.exit(signal === 'SIGINT' ? 130 : 143);
    }
    asked = true;
    onStop(signal);
  };
  process.on('SIGINT', listener);
  process.on('SIGTERM', listener);
  return () => {
    process.off('SIGINT', listener);
    process.off('SIGTERM', listener);
  };
}
