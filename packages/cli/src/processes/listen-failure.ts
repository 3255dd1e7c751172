/** Where something is to listen. */
export interface Address {
  /** The flag that names the port. */
  readonly flag: string;
  readonly port: number;
  readonly host: string;
}

/** By the code of the system: what is wrong, and what to do. */
const WHY: Readonly<Record<string, (host: string) => string>> = {
  EADDRINUSE: () => 'another process listens there; choose another port, or 0 for a free one',
  EACCES: () => 'this user may not listen there; choose a port from 1024 on',
  EADDRNOTAVAIL: (host) => `this machine does not have the address ${host}; choose one that it has`,
  ENOTFOUND: (host) => `the address ${host} is not known here; choose one of this machine`,
};

/**
 * The error of a port that cannot be used: its message names the flag and says what to do. It is not wrong usage, as the
 * same command may succeed at another time.
 */
export function listenFailure({ flag, port, host }: Address, code: string): Error {
  const why = WHY[code]?.(host) ?? `it cannot be opened (${code} on ${host}); choose another port`;
  return Object.assign(new Error(`${flag} ${port}: ${why}`), { code, syscall: 'listen' });
}
