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
  TIMES,
  type ToleratedFailures,
  toleratedFailuresOption,
} from '@piecework/protocol';
import { z } from 'zod';

export interface Dedupe {
  readonly key: string;
  readonly periodMs?: number | undefined;
}

export interface RequestOptions {
  /** Its name everywhere; also what makes a submission recognisable. @default a random one */
  readonly id?: string | undefined;
  /** 0 is served first, 99 last. @default 50 */
  readonly priority?: number | undefined;
  /**
   * Greatest number of its sub-requests in flight at once, over the whole fleet. Without one it uses every
   * slot that is free, and shares them by turns with what else has its priority.
   * Between 1 and 1000000. @default null: no limit
   */
  readonly limit?: number | null | undefined;
  /** Name of the task: only workers that serve it get its sub-requests. @default none: any `handler` */
  readonly task?: string | undefined;
  /**
   * How many unsettled sub-requests Redis may hold; the submission waits while there are as many.
   * 0: no bound. Too small starves the workers: take several times the limit or, without one, the slots of
   * the fleet. @default 0
   */
  readonly window?: number | undefined;
  /** Whether results are kept to be read (`results()` refuses otherwise); failures always are. @default 'keep' */
  readonly results?: 'keep' | 'discard' | undefined;
  /**
   * How often the worker of a sub-request may end while it holds it (killed, out of memory, frozen
   * beyond its lease) at least, before it fails with a CrashError. Before the last time it is tried in
   * ever smaller company, and fails by no crash but one in which it ran alone in its process, so that it
   * is not blamed for others; 1 fails it, and what ran beside it, untried.
   * Between 1 and 1000. @default 3
   */
  readonly maxCrashes?: number | undefined;
  /**
   * How often a sub-request is tried at most: runs that ended in failure or time-out. Runs that ended
   * with their worker are counted by `maxCrashes`. Between 1 and 1000. @default 1
   */
  readonly attempts?: number | undefined;
  /**
   * How long a failed sub-request waits before its next attempt: a fixed delay in ms, or a `Backoff`.
   * While it waits it uses neither a slot nor a permit. @default 0: it is tried again at once
   */
  readonly backoff?: number | Backoff | undefined;
  /**
   * How long one attempt may take, in ms. Then `ctx.signal` aborts, and the attempt has failed, with a
   * TimeoutError, even if the handler goes on: its slot is free only when it has really ended, and what
   * it returns then is not looked at. Between 1 and 2147483647. @default no bound
   */
  readonly attemptTimeoutMs?: number | undefined;
  /**
   * How long the whole request may take from its creation, in ms. Then it ends: what runs may still
   * succeed, the rest is cancelled, and it has failed. Longer than `delayMs`. Between 1 and a year.
   * @default no bound
   */
  readonly deadlineMs?: number | undefined;
  /** How long its sub-requests wait from its creation, in ms. 0 to a year. Not with `runAt`. @default 0 */
  readonly delayMs?: number | undefined;
  /** Until when its sub-requests wait: a Date, or ms since 1970, by the clock of Redis. @default now */
  readonly runAt?: Date | number | undefined;
  /**
   * Whether, once it is due, it goes before the requests of its priority that were not delayed, and
   * among those that ask the same in the order in which they were due. Only with `delayMs` or `runAt`.
   * @default false
   */
  readonly expedite?: boolean | undefined;
  /**
   * How many sub-requests may fail for good without the request failing: a count, or a share of all as
   * '5%' or `{ percent: 5 }`. @default 0
   */
  readonly toleratedFailures?: ToleratedFailures | undefined;
  /**
   * What happens when more have failed. 'continue': all are run to their end, and the outcome is
   * 'failed'. 'cancel': the request ends there, and what was not started is cancelled; a share of all
   * is only known once the request is sealed. @default 'continue'
   */
  readonly onExceeded?: 'continue' | 'cancel' | undefined;
  /** Whether each result, and each failure, says when, where and for how long its attempt ran. @default false */
  readonly timing?: boolean | undefined;
  /** How long outcome, results and failures stay after completion, in ms. @default 86400000, a day */
  readonly retentionMs?: number | undefined;
  /** What becomes of the request when the item source throws half-way. @default 'cancel' */
  readonly onSourceError?: 'cancel' | 'leaveOpen' | undefined;
  /**
   * What becomes of an unsealed request whose producers gave no sign of life. 'cancel': it ends 'cancelled'
   * with endReason 'producer-lost'; 'seal': what is in is all. @default 'cancel'
   */
  readonly onProducerLost?: 'cancel' | 'seal' | undefined;
  /** After how long without a sign of life a producer counts as lost, in ms. @default 30000 */
  readonly producerLeaseMs?: number | undefined;
  /**
   * How long each call goes on trying while Redis is unreachable, full, loading, read-only …, in ms,
   * before it throws; 0: not at all. Longer than `producerLeaseMs` and what comes back may find its
   * request given up. A Redis that was never reached is told at once. @default 30000
   */
  readonly unavailableMs?: number | undefined;
  /**
   * What the seal waits for, so that an acknowledged request outlives a crash of Redis. 'replica': one
   * replica has it; 'fsync': it is on the disk of its server (Redis 7.2 or newer, with `appendonly`).
   * @default 'none'
   */
  readonly durability?: 'none' | 'replica' | 'fsync' | undefined;
  /**
   * A submission under a key that was used within the period is one under the id that the key had then:
   * the request that is there is returned (see `submit`). `key`: as an id; `periodMs`: from the first use,
   * from 1 to `retentionMs`, as the request is known no longer. Not together with `id`, which does the
   * same without a period. @default periodMs: `retentionMs`
   */
  readonly dedupe?: Dedupe | undefined;
  /**
   * Names what the items come from, such as the digest of a file. Whoever submits or opens under the same id,
   * options and source gives the same items from the start; what is in already is passed over, so that any
   * process goes on where another one was cut. @default none: only an array is recognised by its items
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

/** The parts of `dedupe`, also as flags of the command line. */
export const dedupeOptions = {
  key: option.name(),
  periodMs: option.ms(1, 31_536_000_000),
} satisfies OptionTable;

const isDedupe = z.strictObject({
  key: dedupeOptions.key.schema,
  periodMs: dedupeOptions.periodMs.schema.optional(),
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
    z.union([z.date(), z.number().int().min(0).max(8.64e15)]),
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
  metadata: option.custom(z.any().refine(isSmallJson), `JSON of at most ${METADATA_BYTES} bytes`),
  maxPayloadBytes: option.integer(1, LARGEST_VALUE_BYTES, 1_048_576),
  signal: option.custom(z.instanceof(AbortSignal), 'an AbortSignal'),
};

/** The options after the check, defaults filled in. */
export type CheckedOptions = Required<Omit<RequestOptions, Optional>> &
  Pick<RequestOptions, Optional>;

/** Those without a default. */
type Optional =
  | (
      | 'id'
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

/** @throws InvalidOptionError for an option that is not allowed, by itself or beside another */
export function checkRequestOptions(options: RequestOptions): CheckedOptions {
  const checked = checkOptions<CheckedOptions>(requestOptions, options);
  const { delayMs, runAt, deadlineMs, expedite } = checked;
  if (delayMs !== undefined && runAt !== undefined)
    throw new InvalidOptionError('runAt', runAt, 'no delayMs beside it');
  if (expedite && delayMs === undefined && runAt === undefined)
    throw new InvalidOptionError('expedite', expedite, 'delayMs or runAt beside it');
  if (deadlineMs !== undefined && deadlineMs <= (delayMs ?? 0))
    throw new InvalidOptionError('deadlineMs', deadlineMs, `longer than delayMs, ${delayMs}`);
  checkDedupe(checked);
  return checked;
}

/** @throws InvalidOptionError when `dedupe` does not go with the other options */
function checkDedupe({ dedupe, id, retentionMs }: CheckedOptions): void {
  if (!dedupe) return;
  if (id !== undefined) throw new InvalidOptionError('dedupe', dedupe, 'only without an id');
  if ((dedupe.periodMs ?? 0) > retentionMs) {
    const allowed = `at most retentionMs, ${retentionMs} ms`;
    throw new InvalidOptionError('dedupe.periodMs', dedupe.periodMs, allowed);
  }
}
