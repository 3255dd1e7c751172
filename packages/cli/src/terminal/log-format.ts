export type LogFormat = 'text' | 'json';

/** Text on a terminal, which a person reads; else JSON for programs. */
export const defaultLogFormat = (): LogFormat => (process.stderr.isTTY ? 'text' : 'json');
