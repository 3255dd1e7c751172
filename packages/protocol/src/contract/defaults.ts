/** The protocol's own times, all in ms. Times that a user may set are in the options of each role. */
export const TIMES = {
  /** From an intent to the first check whether the request was created. */
  intentGraceMs: 20_000,
  /** A create older than this is refused. Shorter than `tombstoneMs`. */
  createWindowMs: 120_000,
  /** How long a dropped or voided request is remembered. */
  tombstoneMs: 300_000,
  /** How long a claim on the agenda lasts. When the process that claimed it dies, the entry is due again after this. */
  claimMs: 8_000,
  /** From the pop of a token to its enter, at the latest. */
  graceMs: 5_000,
  /** Between two tends of a request that has permits. */
  auditMs: 15_000,
  /**
   * Until a request that seems to need nothing is tended anyway. Of many such requests, as many are tended in this time
   * as one tick claims. Also from the announcement of a change to the tend that finishes it if its process died.
   */
  slowMs: 60_000,
  /** The longest wait between two ticks of a process that does not rest (contract/idle.ts). */
  tickMs: 5_000,
  /**
   * A worker without a sign of life for this long is removed from the registry. When only resting processes ticked before
   * that, Redis was away.
   */
  workerGoneMs: 60_000,
  /** When no process ticked for this long, Redis was away. Three times `tickMs`. */
  awayMs: 15_000,
  /** Added to `awayMs` for each live worker, because each process of a big fleet ticks less often. */
  awayPerWorkerMs: 190,
  /** A call without a reply for this long has failed, and its connection is closed. */
  answerMs: 20_000,
  /** For how long a reader of results says that it follows. It says so again before that. At most 10 s. */
  followMs: 5_000,
  /** How long a replica, or the disk, may take to confirm a seal. */
  durabilityMs: 5_000,
  /**
   * How long callers retry while Redis is away: as long as the default lease of a producer. Later calls would find the
   * request given up.
   */
  unavailableMs: 30_000,
  /**
   * The longest step forward of a server's clock that is provided for: from an hour behind to an hour ahead. A step
   * shortens every expiry. So records that make a repeated call harmless are kept for this much longer than needed.
   */
  longestStepMs: 2 * 3_600_000,
  /** How long ended ids and counts are remembered. */
  historyMs: 7 * 24 * 3_600_000,
} as const;

/** How many ended ids are remembered per queue. */
export const HISTORY_MAX = 1_000;
/** How many agenda entries one tick claims. */
export const CLAIMS_PER_TICK = 50;
/** How many parked requests one tick answers. */
export const PARKED_PER_TICK = 100;

/** In the process title of a server of `piecework dev`: the doctor does not expect that it keeps anything. */
export const DEV_SERVER = 'piecework-dev';
