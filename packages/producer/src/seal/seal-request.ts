import {
  type Connection,
  ConnectionError,
  DroppedError,
  finishOnQueue,
  IndeterminateError,
  isOpen,
  LostError,
  type Patience,
  type Patiently,
  PieceworkError,
  type ProducerCommands,
  type QueueCommands,
} from '@piecework/protocol';

/*
 * The end of a submission. It is acknowledged when both sides have confirmed it and no connection broke in between:
 * a new connection may lead to a server that lost what either side had answered before.
 */

/** How often both sides are asked before the submission fails as indeterminate. */
const TRIES = 20;

/** Where a request is, and how its calls are tried. */
export interface Site {
  readonly connection: Connection;
  readonly queue: QueueCommands;
  readonly request: ProducerCommands;
  readonly patience: Patience;
}

/** What a seal names. */
export interface SealOf {
  readonly generation: number;
  readonly producer: string;
  /** How many items that producer appended in total. */
  readonly sent: number;
  /** When the request was created, by the server's clock, where that is known. */
  readonly createdAt?: number;
}

/**
 * Whether a generation that is gone was complete, and then somebody redrove the request: only what is complete is
 * redriven. A request that was dropped and submitted again, and then redriven, has another `createdAt`.
 */
export async function wasRedriven(
  { request, patience }: Pick<Site, 'request' | 'patience'>,
  { generation, producer, sent, createdAt }: SealOf,
): Promise<boolean> {
  const items = `sent:${producer}`;
  const names = ['generation', 'status', 'redriving', 'sealedBy', 'createdAt', items];
  const now = await patience.call(() => request.fields(...names));
  const { status, redriving, sealedBy } = now;
  const later = Number(now['generation']) > generation && status !== 'void' && redriving !== '';
  const same = sealedBy === producer && Number(now[items]) >= sent;
  // cure: a request that was submitted again is another one
  if (createdAt !== undefined && Number(now['createdAt']) !== createdAt) return false;
  return later && same;
}

/** Why a generation that existed is gone: somebody dropped it, or the server lost it. */
export async function whyGone(
  { request, patience }: Pick<Site, 'request' | 'patience'>,
  generation: number,
  owner = '',
): Promise<DroppedError | LostError> {
  const { id } = request.keys;
  const now = await patience.call(() => request.fields('status', 'generation', 'owner'));
  const { status } = now;
  if (status === 'dropped') return new DroppedError(id);
  const later = status !== '' && status !== 'void' && Number(now['generation']) > generation;
  // A later generation of the same submission: it was submitted again after the server had lost it.
  const ours = owner !== '' && now['owner'] === owner;
  return later && !ours ? new DroppedError(id) : new LostError(id, true);
}

/**
 * Seals a request, or finds it sealed, and ensures that the queue side has it open.
 * @returns 'sealed', or 'complete'; 'cancelling' when somebody cancelled it
 * @throws LostError · DroppedError · IndeterminateError · ServerError, ConnectionError: not sealed
 */
export async function sealRequest(
  site: Site,
  seal: SealOf,
): Promise<'sealed' | 'complete' | 'cancelling'> {
  const { connection, queue, request, patience } = site;
  const { generation, producer, sent } = seal;
  const { id } = request.keys;
  const patiently: Patiently = (call) => patience.call(call);
  for (let i = 0; i < TRIES; i += 1) {
    const { epoch } = connection;
    const sealed = await patience.call(() => request.seal(generation, producer, sent));
    // cure: what was redriven since was complete
    if (sealed.verdict === 'gone' && (await wasRedriven(site, seal))) return 'complete';
    if (sealed.verdict === 'gone') throw await whyGone(site, generation, producer);
    if (sealed.verdict === 'gap') throw new LostError(id, true);
    if (sealed.verdict === 'complete') {
      const { outcome, spentAt } = sealed;
      const over = { generation, outcome, ...(spentAt ? { spentAt } : {}) };
      await tryOrLeaveToTick(() => finishOnQueue(epoch, queue, request, over, patiently));
      if (connection.epoch === epoch) return sealed.verdict;
      continue;
    }
    const open = await confirmed(id, () => isOpen(queue, request, generation, patiently));
    // It ended meanwhile, or was lost: the next seal finds out.
    // cure: a seal checks both sides again after a reconnect
    if (open && connection.epoch === epoch) return sealed.verdict;
  }
  throw new IndeterminateError(id, new ConnectionError('the connection breaks again and again'));
}

/**
 * Asks the queue side about a request that is sealed. If it does not answer, the request may be in or lost.
 * @throws IndeterminateError
 */
export async function confirmed<T>(id: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    const unsure = error instanceof PieceworkError && error.retryable;
    throw unsure && !(error instanceof IndeterminateError)
      ? new IndeterminateError(id, error)
      : error;
  }
}

/** Sends a stored end to the queue side. If Redis cannot be reached, the error is ignored, as a tick sends it too. */
export async function tryOrLeaveToTick(call: () => Promise<unknown>): Promise<void> {
  try {
    await call();
  } catch (error) {
    if (!(error instanceof PieceworkError && error.retryable)) throw error;
  }
}
