import {
  type Backoff,
  backoffOption,
  checkOptions,
  InvalidOptionError,
  LARGEST_VALUE_BYTES,
  limitOption,
  NAME,
  type OptionTable,
  option,
  serverTimeMs,
  shape,
  TIMES,
  type ToleratedFailures,
  type TraceContext,
  toleratedFailuresOption,
} from '@piecework/protocol/contract';

/** See `RequestOptions.dedupe`. */
export interface Dedupe {
  /** 1 to 128 of A-Z a-z 0-9 _ . : - */
  readonly key: string;
  /** How long the key identifies its request, from its first use, in ms. @default `retentionMs` */
  readonly periodMs?: number | undefined;
}

export interface RequestOptions {
  /**
   * The name of the request in every process; a repeated submission is recognised by it. 1 to 128 of
   * A-Z a-z 0-9 _ . : - @default a random one
   */
  readonly id?: string | undefined;
  /**
   * 0 is served first, 99 last. A request of a higher priority gets the next slots that become free; it interrupts no
   * handler. @default 50
   */
  readonly priority?: number | undefined;
  /**
   * Greatest number of its sub-requests that run at once, over the whole fleet. Without a limit the request uses
   * every free slot, and takes turns with other requests of its priority.
   * Between 1 and 1000000. @default null: no limit
   */
  readonly limit?: number | null | undefined;
  /** Name of the task: only workers that serve it get its sub-requests. @default none: workers with a `handler` */
  readonly task?: string | undefined;
  /**
   * How many unsettled sub-requests Redis may have; the submission waits while there are as many. 0: no bound.
   * Too small a window starves the workers: take several times the limit or, without one, the slots of the
   * fleet. @default 0
   */
  readonly window?: number | undefined;
  /** Whether results are kept, so that `results()` can read them; failures always are. @default 'keep' */
  readonly results?: 'keep' | 'discard' | undefined;
  /**
   * After how many crashes of its worker (killed, out of memory, frozen beyond its lease) a sub-request fails
   * with a CrashError. Its last runs are isolated from other sub-requests, and only a crash in which it ran alone in
   * its process makes it fail, so that it is not blamed for others. With 1 the first crash fails it, and all
   * that ran beside it. Between 1 and 1000. @default 3
   */
  readonly maxCrashes?: number | undefined;
  /**
   * How many attempts a sub-request gets. A run that ends in failure or time-out is an attempt; one that ends with
   * its worker counts for `maxCrashes` instead. Between 1 and 1000. @default 1
   */
  readonly attempts?: number | undefined;
  /**
   * How long a failed sub-request waits before its next attempt: a fixed delay in ms, or a `Backoff`.
   * The delay is a minimum: the next attempt may start about a second later. While it waits it uses neither a slot nor
   * a permit. @default 0: it is tried again at once
   */
  readonly backoff?: number | Backoff | undefined;
  /**
   * How long one attempt may take, in ms. Then `ctx.signal` aborts, and the attempt fails with a TimeoutError, even
   * if the handler continues. Its slot is free only when the handler has really ended; what it returns then is
   * ignored. Between 1 and 2147483647. @default no bound
   */
  readonly attemptTimeoutMs?: number | undefined;
  /**
   * How long the whole request may take from its creation, in ms. Then the request ends as failed: what runs may
   * still succeed, the rest is cancelled. The deadline must be later than the start that `delayMs` or
   * `runAt` sets. Between 1 and a year.
   * @default no bound
   */
  readonly deadlineMs?: number | undefined;
  /** How long its sub-requests wait from its creation, in ms. 0 to a year. Not with `runAt`. @default 0 */
  readonly delayMs?: number | undefined;
  /** Until when its sub-requests wait: a Date, or ms since 1970, by the clock of Redis. @default now */
  readonly runAt?: Date | number | undefined;
  /**
   * Whether the request, once it is due, is served before the requests of its priority that were not delayed.
   * Expedited requests are served in the order in which they became due. Only with `delayMs` or `runAt`.
   * @default false
   */
  readonly expedite?: boolean | undefined;
  /**
   * How many sub-requests may fail for good before the request counts as failed: a count, or a share of all
   * sub-requests as '5%' or `{ percent: 5 }`. @default 0
   */
  readonly toleratedFailures?: ToleratedFailures | undefined;
  /**
   * What happens when more have failed. 'continue': the rest still runs, and the outcome is 'failed'. 'cancel': the
   * request ends then, and what was not started is cancelled; a share of all sub-requests is known only once the
   * request is sealed. @default 'continue'
   */
  readonly onExceeded?: 'continue' | 'cancel' | undefined;
  /** Whether each result and each failure records when, where and for how long its attempt ran. @default false */
  readonly timing?: boolean | undefined;
  /** How long outcome, results and failures are kept after completion, in ms, from 1000. @default 86400000, a day */
  readonly retentionMs?: number | undefined;
  /** What becomes of the request when the item source throws half-way. @default 'cancel' */
  readonly onSourceError?: 'cancel' | 'leaveOpen' | undefined;
  /**
   * What becomes of an unsealed request when all its producers are lost. 'cancel': it ends as 'cancelled' with
   * endReason 'producer-lost'. 'seal': it is sealed with the items that are in. @default 'cancel'
   */
  readonly onProducerLost?: 'cancel' | 'seal' | undefined;
  /** After this time without a renewal of its lease a producer counts as lost, in ms, from 1000. @default 30000 */
  readonly producerLeaseMs?: number | undefined;
  /**
   * How long each call keeps trying while Redis is unreachable, full, loading, read-only …, in ms, before it
   * throws; 0: not at all. If it is longer than `producerLeaseMs`, others may have given the request up before a
   * call succeeds. Calls fail at once when Redis was never reached. @default 30000
   */
  readonly unavailableMs?: number | undefined;
  /**
   * What the seal waits for, so that an acknowledged request survives a crash of Redis. 'replica': one replica has
   * the request; 'fsync': it is on the disk of its server (Redis 7.2 or newer, with `appendonly`).
   * @default 'none'
   */
  readonly durability?: 'none' | 'replica' | 'fsync' | undefined;
  /**
   * Finds the id by a key. A submission with a key that was used within `periodMs` gets the id of that first use:
   * the existing request is returned (see `submit`). `key`: as an id; `periodMs`: from 1 to `retentionMs`, because
   * the request is not known for longer. Not together with `id`, which does the same without a period.
   * @default periodMs: `retentionMs`
   */
  readonly dedupe?: Dedupe | undefined;
  /**
   * Names what the items come from, such as the digest of a file. A process that submits or opens with the same id,
   * options and source has to give the same items from the start; items that are in already are skipped. So any
   * process continues what another one did not finish. @default none: only an array is recognised by its items
   */
  readonly source?: string | undefined;
  /** Anything small as JSON, at most 8 KiB, shown by `status`. */
  readonly metadata?: unknown | undefined;
  /** Largest encoded payload, in bytes; up to 256 MiB. @default 1048576 */
  readonly maxPayloadBytes?: number | undefined;
  /** Stops the submission with AbortError; the request is then treated as by `onSourceError`. */
  readonly signal?: AbortSignal | undefined;
}

const METADATA_BYTES = 8_192;

function isSmallJson(value: unknown): boolean {
  try {
    const text = JSON.stringify(value);
    return text !== undefined && Buffer.byteLength(text) <= METADATA_BYTES;
  } catch {
    return false;
  }
}

/** The parts of `dedupe`; the command line makes flags of them. */
export const dedupeOptions = {
  key: option.name(),
  periodMs: option.ms(1, 31_536_000_000),
} satisfies OptionTable;

const isDedupe = shape.exactly({
  key: dedupeOptions.key.fits,
  periodMs: shape.optional(dedupeOptions.periodMs.fits),
});

export const requestOptions: OptionTable = {
  id: option.name(),
  priority: option.integer(0, 99, 50),
  limit: limitOption,
  task: option.name(),
  window: option.integer(0, 1_000_000_000, 0),
  results: option.word('keep', 'discard'),
  maxCrashes: option.integer(1, 1_000, 3),
  attempts: option.integer(1, 1_000, 1),
  backoff: backoffOption,
  attemptTimeoutMs: option.ms(1, 2_147_483_647),
  toleratedFailures: toleratedFailuresOption,
  onExceeded: option.word('continue', 'cancel'),
  deadlineMs: option.ms(1, 31_536_000_000),
  delayMs: option.ms(0, 31_536_000_000),
  runAt: option.custom(
    shape.either(shape.date, shape.integer(0, 8.64e15)),
    'a Date, or a whole number of ms since 1970',
  ),
  expedite: option.boolean(false),
  timing: option.boolean(false),
  retentionMs: option.ms(1_000, 31_536_000_000, 86_400_000),
  onSourceError: option.word('cancel', 'leaveOpen'),
  onProducerLost: option.word('cancel', 'seal'),
  producerLeaseMs: option.ms(1_000, 86_400_000, 30_000),
  unavailableMs: option.ms(0, 86_400_000, TIMES.unavailableMs),
  durability: option.word('none', 'replica', 'fsync'),
  dedupe: option.custom(isDedupe, `{ key, periodMs }: a key as ${NAME}, and ms of at least 1`),
  source: option.name(),
  metadata: option.custom(isSmallJson, `JSON of at most ${METADATA_BYTES} bytes`),
  maxPayloadBytes: option.integer(1, LARGEST_VALUE_BYTES, 1_048_576),
  signal: option.custom(shape.instance(AbortSignal), 'an AbortSignal'),
};

/** The options after the check, defaults filled in. The id is kept apart: it is all that most submissions differ in. */
export type CheckedOptions = Required<Omit<RequestOptions, Optional | 'id'>> &
  Pick<RequestOptions, Optional> & {
    /** Of this submission; undefined without telemetry. */
    readonly trace?: TraceContext | undefined;
  };

/** Options without a default. */
type Optional =
  | (
      | 'limit'
      | 'task'
      | 'dedupe'
      | 'backoff'
      | 'attemptTimeoutMs'
      | 'metadata'
      | 'signal'
      | 'source'
    )
  | ('deadlineMs' | 'delayMs' | 'runAt');

type WithId = CheckedOptions & Pick<RequestOptions, 'id'>;

/** @throws InvalidOptionError for an option that is not allowed, by itself or beside another */
export function checkRequestOptions(options: RequestOptions): WithId {
  const checked = checkOptions<WithId>(requestOptions, options);
  const { delayMs, runAt, deadlineMs, expedite } = checked;
  if (delayMs !== undefined && runAt !== undefined)
    throw new InvalidOptionError('runAt', runAt, 'no delayMs beside it');
  if (expedite && delayMs === undefined && runAt === undefined)
    throw new InvalidOptionError('expedite', expedite, 'delayMs or runAt beside it');
  if (deadlineMs !== undefined && deadlineMs <= (delayMs ?? 0))
    throw new InvalidOptionError('deadlineMs', deadlineMs, `longer than delayMs, ${delayMs}`);
  const untilRunMs = runAt === undefined ? 0 : Number(runAt) - serverTimeMs();
  if (deadlineMs !== undefined && deadlineMs <= untilRunMs) {
    const allowed = `longer than it is until runAt, ${untilRunMs} ms: it counts from the submission`;
    throw new InvalidOptionError('deadlineMs', deadlineMs, allowed);
  }
  checkDedupe(checked);
  return checked;
}

/** @throws InvalidOptionError when `dedupe` does not go with the other options */
function checkDedupe({ dedupe, id, retentionMs }: WithId): void {
  if (!dedupe) return;
  if (id !== undefined) throw new InvalidOptionError('dedupe', dedupe, 'only without an id');
  if ((dedupe.periodMs ?? 0) > retentionMs) {
    const allowed = `at most retentionMs, ${retentionMs} ms`;
    throw new InvalidOptionError('dedupe.periodMs', dedupe.periodMs, allowed);
  }
}
