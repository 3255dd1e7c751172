import {
  type AttemptPolicy,
  decodeLimit,
  decodePolicy,
  type EndReason,
  type Inspected,
  placeOf,
  type RequestOutcome,
  type RequestReads,
} from '@piecework/protocol';
import { QueueSigns } from './standstill.js';
import {
  inspectPresent,
  type RequestStatus,
  STATUS_FIELDS,
  type StatusQueue,
  statusIn,
} from './status.js';

/**
 * The options that a request was submitted with, as it keeps them: defaults are filled in, and what `update` changed
 * later does not show. See `RequestOptions` for what each means. Lengths are in ms.
 */
export interface SubmittedOptions {
  readonly priority: number;
  /** null: no limit. */
  readonly limit: number | null;
  readonly task: string | undefined;
  /** 0: no bound. */
  readonly window: number;
  readonly results: 'keep' | 'discard';
  readonly maxCrashes: number;
  readonly attempts: number;
  /** With its own defaults; undefined: an attempt that failed is repeated at once. */
  readonly backoff: AttemptPolicy['backoff'];
  readonly attemptTimeoutMs: number | undefined;
  readonly timing: boolean;
  /** From the creation on. */
  readonly deadlineMs: number | undefined;
  /** From the creation on. */
  readonly delayMs: number | undefined;
  /** In ms since 1970; also undefined for requests that an earlier release submitted. */
  readonly runAt: number | undefined;
  readonly expedite: boolean;
  /** A count, or a share of all as '5%'. */
  readonly toleratedFailures: number | `${number}%`;
  readonly onExceeded: 'continue' | 'cancel';
  readonly retentionMs: number;
  readonly onProducerLost: 'cancel' | 'seal';
  readonly producerLeaseMs: number;
}

/** One generation of a request: its submission, or a redrive. Times are the Redis server's, in ms since 1970. */
export interface Generation {
  readonly generation: number;
  readonly beganAt: number;
  /** undefined while it lasts, as are `outcome` and `endReason`. */
  readonly completedAt: number | undefined;
  readonly outcome: RequestOutcome | undefined;
  readonly endReason: EndReason | undefined;
  /** The counts of the whole request at its end, or now. */
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
  /** How many failed sub-requests it ran again; 0 of the first. */
  readonly redriven: number;
}

/** Everything known about one request: also how it was submitted, and its earlier generations. */
export interface RequestDetails extends RequestStatus {
  readonly options: SubmittedOptions;
  /**
   * Its generations, the oldest first; the last is the current one. At most eleven: older ones are forgotten, and so
   * are those that a release without this field ended.
   */
  readonly generations: readonly Generation[];
}

/** Options that `update` or a redrive may change. What they were is kept beside. */
const CHANGEABLE = ['priority', 'limit', 'toleratedFailures', 'onProducerLost', 'leaseMs'] as const;

const FIELDS = [
  ...STATUS_FIELDS,
  ...CHANGEABLE,
  ...CHANGEABLE.map((name) => `given:${name}`),
  ...['task', 'window', 'results', 'maxCrashes', 'attempts', 'policy', 'deadlineMs', 'delayMs'],
  ...['runAt', 'expedite', 'onExceeded', 'retentionMs'],
  ...['past', 'openedAt', 'moved'],
];

const ALL_FIELDS = [...new Set(FIELDS)];

/**
 * @param generation one that is known to have begun, or 0
 * @throws NotFoundError · ExpiredError · LostError · DroppedError · ConnectionError, ServerError
 */
export async function requestDetails(
  request: RequestReads,
  queue: StatusQueue,
  generation = 0,
  signs = new QueueSigns(queue),
): Promise<RequestDetails> {
  const seen = await inspectPresent(request, queue, ALL_FIELDS, generation);
  const status = await statusIn(request, signs, seen);
  return { ...status, options: optionsOf(seen), generations: generationsOf(seen, status) };
}

function optionsOf({ state }: Inspected): SubmittedOptions {
  const given = (name: (typeof CHANGEABLE)[number]) => state[`given:${name}`] ?? state[name] ?? '';
  const number = (name: string) => (state[name] ? Number(state[name]) : undefined);
  const { backoff, attemptTimeoutMs, timing = false } = decodePolicy(state['policy'] ?? '');
  const tolerated = given('toleratedFailures');
  return {
    priority: placeOf(given('priority')).priority,
    limit: decodeLimit(given('limit')),
    task: state['task'] || undefined,
    window: number('window') ?? 0,
    results: state['results'] === 'discard' ? 'discard' : 'keep',
    maxCrashes: number('maxCrashes') ?? 0,
    attempts: number('attempts') ?? 1,
    backoff,
    attemptTimeoutMs,
    timing,
    deadlineMs: number('deadlineMs'),
    delayMs: number('delayMs'),
    runAt: number('runAt'),
    expedite: state['expedite'] === '1',
    toleratedFailures: tolerated.endsWith('%') ? (tolerated as `${number}%`) : Number(tolerated),
    onExceeded: state['onExceeded'] === 'cancel' ? 'cancel' : 'continue',
    retentionMs: number('retentionMs') ?? 0,
    onProducerLost: given('onProducerLost') === 'seal' ? 'seal' : 'cancel',
    producerLeaseMs: Number(given('leaseMs')),
  };
}

/** A line of `past`: docs/protocol.md, "Fields of the state". */
function endedGeneration(line: string): Generation {
  const [generation, beganAt, completedAt, outcome, succeeded, failed, cancelled, redriven, end] =
    line.split(' ');
  return {
    generation: Number(generation),
    beganAt: Number(beganAt),
    completedAt: Number(completedAt),
    outcome: outcome as RequestOutcome,
    endReason: end === '-' ? undefined : (end as EndReason),
    succeeded: Number(succeeded),
    failed: Number(failed),
    cancelled: Number(cancelled),
    redriven: Number(redriven),
  };
}

function generationsOf({ state }: Inspected, status: RequestStatus): Generation[] {
  const { generation, createdAt, completedAt, outcome, endReason, counts } = status;
  const { succeeded, failed, cancelled } = counts;
  const past = (state['past'] ?? '').split('\n').filter(Boolean);
  const current = {
    ...{ generation, beganAt: Number(state['openedAt'] ?? createdAt), completedAt, outcome },
    ...{ endReason, succeeded, failed, cancelled, redriven: Number(state['moved'] ?? 0) },
  };
  return [...past.map(endedGeneration), current];
}
