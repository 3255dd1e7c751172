const PASSED_ON = [
  ...['shards', 'concurrency', 'leaseMs', 'maxBlockMs', 'slowMs', 'quantumMs', 'drainMs'],
  ...['settleDelayMs', 'idle'],
  ...['maxResultBytes', 'exec', 'execFields', 'execInput', 'execOutput', 'execStderr'],
  ...['persistent', 'logLevel', 'logFormat'],
];

/** The flags that a fleet passes on to its processes. */
export function passedOn(values: Record<string, unknown>): string[] {
  return PASSED_ON.flatMap((name) => {
    const value = values[name];
    const named = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    if (value === undefined || value === false) return [];
    // One word, as the value may begin with a dash.
    return [value === true ? named : `${named}=${value}`];
  });
}
