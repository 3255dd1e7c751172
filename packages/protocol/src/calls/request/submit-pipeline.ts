import { TIMES } from '../../contract/defaults.js';
import { PieceworkError } from '../../contract/errors.js';
import type { RequestKeys } from '../../contract/keys.js';
import { type Place, placeOf } from '../../contract/lanes.js';
import type { Argument } from '../../redis/client.js';
import type { Connection } from '../../redis/connection.js';
import { callOf, runCall, runCalls, type ScriptCall } from '../../scripts/run-script.js';
import type { RequestOutcome } from './request-outcome.js';

/**
 * The number of the first item of a producer that creates, appends and seals in one pipeline. Its create counts as
 * number 0, in the field `sent:<owner>` that it writes. When the create was refused, the next scripts therefore find a
 * gap, even if another producer's request of the same generation exists.
 */
export const BEHIND_CREATE = 1;

/** The result for a request that has all its items and is sealed. */
export interface PipelineReply extends Place {
  /** How many tokens are left to be pushed. */
  readonly mint: number;
  readonly epoch: number;
  /** Set when the request has already ended, for example because it was cancelled in between. */
  readonly outcome: RequestOutcome | undefined;
}

export interface WholeRequest {
  readonly generation: number;
  readonly owner: string;
  readonly leaseMs: number;
  /** field, value, … of its options, and of `createField`. */
  readonly fields: readonly Argument[];
  readonly payloads: readonly string[];
}

/** The field that such a create writes in addition to the options. */
export const createField = (owner: string): [string, number] => [`sent:${owner}`, BEHIND_CREATE];

/**
 * Creates a request with all its items, and seals it: `create`, `append` and `seal` in one round trip. Answers
 * undefined when it is not known whether all of that was done; then make the same calls one after the other, which find
 * what has been done.
 * @throws the error of the create
 */
export async function submitInPipeline(
  connection: Connection,
  keys: RequestKeys,
  whole: WholeRequest,
): Promise<PipelineReply | undefined> {
  const [create, append, seal] = callsOf(keys, whole);
  const { client } = connection;
  const [created, appended, sealed] = await runCalls(client, [create, append, seal]);
  if (created instanceof PieceworkError) throw created;
  // An append succeeds only after a create by the same owner. It may be an earlier one: the server may not know ours.
  if (appended === undefined || appended instanceof PieceworkError) return undefined;
  if (appended.verdict !== 'ok') return undefined;
  // Only one reply names the minted tokens, so they must not be dropped. If the server did not know `seal`, run it now.
  const end = sealed ?? (await runCall(client, seal));
  if (end instanceof PieceworkError) return undefined;
  if (end.verdict !== 'sealed' && end.verdict !== 'complete') return undefined;
  const outcome = end.verdict === 'complete' ? end.outcome : undefined;
  return { mint: appended.mint, epoch: appended.epoch, ...placeOf(appended.priority), outcome };
}

function callsOf(
  keys: RequestKeys,
  whole: WholeRequest,
): [ScriptCall<'create'>, ScriptCall<'append'>, ScriptCall<'seal'>] {
  const { generation, owner, leaseMs, fields, payloads } = whole;
  const { channel } = keys;
  const sent = BEHIND_CREATE + payloads.length;
  const windowMs = TIMES.createWindowMs;
  const producer = owner;
  return [
    callOf('create', keys, { generation, owner, windowMs, leaseMs, fields }),
    callOf('append', keys, { generation, producer, first: BEHIND_CREATE, payloads }),
    callOf('seal', keys, { generation, producer, sent, channel }),
  ];
}
