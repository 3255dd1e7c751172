import type { Connection } from './connection.js';
import { TIMES } from './defaults.js';
import { PieceworkError } from './errors.js';
import type { RequestKeys } from './keys.js';
import { type Place, placeOf } from './lanes.js';
import type { Minted, QueueCommands } from './queue-commands.js';
import type { RequestOutcome } from './request-commands.js';
import {
  type Argument,
  type Client,
  runScript,
  runScripts,
  type ScriptCall,
} from './run-script.js';

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
  readonly push: ScriptCall;
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
  const calls = callsOf(keys, whole);
  const all = first ? [...calls, first.push] : calls;
  const replies = await runScripts(connection.client, all);
  const [created] = replies;
  if (created instanceof PieceworkError) throw created;
  const appended = wordsOf(replies[1]);
  // Taken only behind a create of this name, be it one before: this server may not have known ours.
  if (appended?.[0] !== 'ok') return undefined;
  // What was minted is told once: a server that did not know the seal is asked for it here.
  const sealed = wordsOf(replies[2] ?? (await runCall(connection.client, calls[2])));
  if (sealed?.[0] !== 'sealed' && sealed?.[0] !== 'complete') return undefined;
  const [, , mint, epoch, priority] = appended as [string, number, number, number, string];
  const outcome = sealed[0] === 'complete' ? (sealed[1] as RequestOutcome) : undefined;
  const minted = { mint, epoch, ...placeOf(priority) };
  const told = first !== undefined && wordsOf(replies[3])?.[0] === 'pushed';
  return { ...minted, mint: told ? leftOf(minted, first) : mint, told, outcome };
}

type Mint = Pick<Minted, 'mint' | 'epoch' | 'priority' | 'due'>;

/** How many of the minted tokens the first one is not. */
function leftOf({ mint, epoch, priority, due }: Mint, { token }: FirstToken): number {
  const alike = epoch === token.epoch && priority === token.priority && due === token.due;
  return alike ? Math.max(0, mint - token.mint) : mint;
}

const wordsOf = (reply: unknown[] | PieceworkError | undefined): unknown[] | undefined =>
  reply instanceof PieceworkError ? undefined : reply;

const runCall = (client: Client, { name, keys, args }: ScriptCall) =>
  runScript(client, name, keys, args);

function callsOf(keys: RequestKeys, whole: WholeRequest): [ScriptCall, ScriptCall, ScriptCall] {
  const { request, work, due, tries, progress, failed, results, channel } = keys;
  const { generation, owner, leaseMs, fields, payloads } = whole;
  const sent = BEHIND_CREATE + payloads.length;
  return [
    {
      name: 'create',
      keys: [request, work],
      args: [generation, owner, TIMES.createWindowMs, leaseMs, ...fields],
    },
    {
      name: 'append',
      keys: [request, work, due],
      args: [generation, owner, BEHIND_CREATE, ...payloads],
    },
    {
      name: 'seal',
      keys: [request, work, due, tries, progress, failed, results],
      args: [generation, owner, sent, channel],
    },
  ];
}
