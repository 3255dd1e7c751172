/** The protocol's own times, all in ms. What a user may set stands in the options of each role. */
export const TIMES = {
  /** From an intent to the first look whether the request came into being. */
  intentGraceMs: 20_000,
  /** A create older than this is refused; shorter than the tombstone lives. */
  createWindowMs: 120_000,
  /** How long a dropped or voided request is remembered. */
  tombstoneMs: 300_000,
  /** How long a claim of the agenda lasts; a claimer that dies fires again after it. */
  claimMs: 8_000,
  /** From the pop of a token to its enter, at the latest. */
  graceMs: 5_000,
  /** Between two looks at a request that workers hold. */
  auditMs: 15_000,
  /** Until a request that seems to need nothing is looked at all the same. */
  slowMs: 60_000,
  /** A worker without a sign of life for so long is struck out of the registry. */
  workerGoneMs: 60_000,
  /** No process ticked for so long: Redis was away. Three times the longest wait between two ticks. */
  awayMs: 15_000,
  /** The same for each live worker, as a big fleet ticks seldom. */
  awayPerWorkerMs: 190,
  /** A call without an answer for so long has failed, and its connection is thrown away. */
  answerMs: 20_000,
  /** How long a replica, or the disk, may take to confirm a seal. */
  durabilityMs: 5_000,
  /**
   * How long callers go on trying while Redis is away: as long as a producer is believed by default,
   * as what comes later finds the request given up.
   */
  unavailableMs: 30_000,
  /**
   * How far the clock of a server steps forward at most: from an hour behind to an hour ahead. So much longer
   * than needed is remembered what a call that comes twice must not do twice, as a step takes it off what is left.
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
