/** Why a worker ended, as far as the process that noticed it knows. */
export interface CrashCause {
  /** Exit code of its process; or `signal`, the name of the signal that ended it. */
  readonly exitCode?: number;
  readonly signal?: string;
  /**
   * Set for SIGKILL and SIGABRT: the system or Node ends a process that is out of memory with one of these. Others may
   * send them too.
   */
  readonly outOfMemory?: 'perhaps';
  /** For how long its event loop had not answered when its lease was given up, in ms. */
  readonly blockedMs?: number;
}

/** An error as it is stored with a failed sub-request. A `CrashError` also has what is known of the crash. */
export interface KeptError extends CrashCause {
  readonly name: string;
  /** Followed by the messages of its causes, as 'fetch failed: connect ECONNREFUSED 127.0.0.1:1'. */
  readonly message: string;
  /** Such as 'ENOENT', if the thrown value had a code. */
  readonly code?: string;
  readonly stack?: string;
  /** How often a worker ended while it ran the sub-request. */
  readonly crashes?: number;
  /** Boot id of the last of these workers, its host, and its process id there. */
  readonly worker?: string;
  readonly host?: string;
  readonly pid?: number;
}
