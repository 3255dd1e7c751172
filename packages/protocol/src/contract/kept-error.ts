/** Why a worker ended, as far as whoever saw it knows. */
export interface CrashCause {
  /** With which its process ended; or `signal`, the name of the one that ended it. */
  readonly exitCode?: number;
  readonly signal?: string;
  /**
   * By these two a system or Node itself ends a process that is out of memory; others may send them too.
   * Known for SIGKILL and SIGABRT.
   */
  readonly outOfMemory?: 'perhaps';
  /** For how long its event loop had not answered when its lease was given up, in ms. */
  readonly blockedMs?: number;
}

/** An error as it is kept with a failed sub-request. A `CrashError` also says what is known of the crash. */
export interface KeptError extends CrashCause {
  readonly name: string;
  /** With the messages of its causes behind it, as 'fetch failed: connect ECONNREFUSED 127.0.0.1:1'. */
  readonly message: string;
  /** As 'ENOENT', of what was thrown with one. */
  readonly code?: string;
  readonly stack?: string;
  /** How often its worker ended while it held the sub-request. */
  readonly crashes?: number;
  /** Boot id of the last of them, its host, and its process id there. */
  readonly worker?: string;
  readonly host?: string;
  readonly pid?: number;
}
