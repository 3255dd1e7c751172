import { TIMES } from '../contract/defaults.js';
import { PieceworkError } from '../contract/errors.js';
import type { RequestKeys } from '../contract/keys.js';
import { type Place, placeOf } from '../contract/lanes.js';
import type { Argument } from '../redis/client.js';
import type { Connection } from '../redis/connection.js';
import { callOf, runCall, runCalls, type ScriptCall } from '../scripts/run-script.js';
import type { Minted, QueueCommands } from './queue-commands.js';
import type { RequestOutcome } from './request-outcome.js';

/**
 * The number of the first item of a producer that creates, appends and seals in one pipeline. Its
 * create counts as number 0, in the field `sent:<owner>` that it writes. So the scripts behind it find
 * a gap when it was refused, be it that somebody else's request of the same generation is there.
 */
export const BEHIND_CREATE = 1;

/** A request that is all in. */
export interface AllIn extends Place {
  /** How many tokens are left to be pushed. */
  readonly mint: number;
  readonly epoch: number;
  /** Whether the queue side has said that it is open. */
  readonly told: boolean;
  /** When it is over already, as when somebody cancelled it in between. */
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

/** What such a create writes beside the options. */
export const createField = (owner: string): readonly Argument[] => [`sent:${owner}`, BEHIND_CREATE];

/** A token that is pushed before its mint is answered. */
export interface FirstToken {
  readonly token: Minted;
  readonly push: ScriptCall<'push'>;
}

/**
 * The token that `append` will mint of a request that is new, neither expedited nor held back: as nothing
 * of it is granted or outstanding, one, of the first epoch. If it turns out not to have been minted, it
 * is a surplus one, which finds no permit.
 */
export function firstToken(
  queue: QueueCommands,
  request: { id: string; generation: number; priority: number },
): FirstToken {
  const token = { ...request, mint: 1, epoch: 1 };
  return { token, push: queue.pushCall(token) };
}

/**
 * Brings a request into being with all its items, and seals it: `create`, `append` and `seal` in one
 * round trip; and `push` of the `first` token, where the server of the queue is the same. Answers
 * undefined when it is not known to be all in: then the same calls, one after the other, find what is there.
 * @throws what Redis says of the create
 */
export async function createAllIn(
  connection: Connection,
  keys: RequestKeys,
  whole: WholeRequest,
  first?: FirstToken,
): Promise<AllIn | undefined> {
  const [create, append, seal] = callsOf(keys, whole);
  const { client } = connection;
  const [created, appended, sealed, pushed] = first
    ? await runCalls(client, [create, append, seal, first.push])
    : await runCalls(client, [create, append, seal]);
  if (created instanceof PieceworkError) throw created;
  // Taken only behind a create of this name, be it one before: this server may not have known ours.
  if (appended === undefined || appended instanceof PieceworkError) return undefined;
  if (appended.verdict !== 'ok') return undefined;
  // What was minted is told once: a server that did not know the seal is asked for it here.
  const end = sealed ?? (await runCall(client, seal));
  if (end instanceof PieceworkError) return undefined;
  if (end.verdict !== 'sealed' && end.verdict !== 'complete') return undefined;
  const outcome = end.verdict === 'complete' ? end.outcome : undefined;
  const minted = { mint: appended.mint, epoch: appended.epoch, ...placeOf(appended.priority) };
  const isTold = pushed !== undefined && !(pushed instanceof PieceworkError);
  const told = first !== undefined && isTold && pushed.verdict === 'pushed';
  return { ...minted, mint: told ? leftOf(minted, first) : minted.mint, told, outcome };
}

type Mint = Pick<Minted, 'mint' | 'epoch' | 'priority' | 'due'>;

/** How many of the minted tokens the first one is not. */
function leftOf({ mint, epoch, priority, due }: Mint, { token }: FirstToken): number {
  const alike = epoch === token.epoch && priority === token.priority && due === token.due;
  return alike ? Math.max(0, mint - token.mint) : mint;
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
