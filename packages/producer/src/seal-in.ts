import {
  type Connection,
  ConnectionError,
  DroppedError,
  IndeterminateError,
  isOpen,
  LostError,
  type Patience,
  type Patiently,
  PieceworkError,
  type QueueCommands,
  type RequestCommands,
  tellOver,
} from '@piecework/protocol';

/*
 * The end of a submission. Its caller is told that it is in when both sides have said so and no connection
 * broke in between: behind a new one may be a server that lost what was answered before, on either side.
 */

/** How often both sides are asked before the caller learns that nothing is certain. */
const TRIES = 20;

/** Where a request is, and how it is asked for. */
export interface Site {
  readonly connection: Connection;
  readonly queue: QueueCommands;
  readonly request: RequestCommands;
  readonly patience: Patience;
}

export interface SealOf {
  readonly generation: number;
  readonly producer: string;
  /** How many items that producer appended, all told. */
  readonly sent: number;
}

/** Why a life is not there that was: somebody dropped it, or the server lost it. */
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
  // A later life of the same submission: it was asked for twice, and lost.
  const ours = owner !== '' && now['owner'] === owner;
  return later && !ours ? new DroppedError(id) : new LostError(id, true);
}

/**
 * Seals a request, or finds it sealed, and makes sure that the queue side has it open.
 * @returns 'sealed', or 'complete'; 'cancelling' when somebody cancelled it
 * @throws LostError · DroppedError · IndeterminateError · ServerError, ConnectionError: not sealed
 */
export async function sealIn(
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
    if (sealed.verdict === 'gone') throw await whyGone(site, generation, producer);
    if (sealed.verdict === 'gap') throw new LostError(id, true);
    if (sealed.verdict === 'complete') {
      const { outcome, spentAt } = sealed;
      const over = { generation, outcome, ...(spentAt ? { spentAt } : {}) };
      await tellEnd(() => tellOver(epoch, queue, request, over, patiently));
      if (connection.epoch === epoch) return sealed.verdict;
      continue;
    }
    const open = await confirmed(id, () => isOpen(queue, request, generation, patiently));
    // It ended meanwhile, or was lost, which the next seal tells.
    if (open && connection.epoch === epoch) return sealed.verdict;
  }
  throw new IndeterminateError(id, new ConnectionError('the connection breaks again and again'));
}

/** What is sealed, and not known to be open, is in or lost. @throws IndeterminateError */
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

/** The request's own side has it; what the queue side does not learn here, a tick tells it. */
export async function tellEnd(tell: () => Promise<unknown>): Promise<void> {
  try {
    await tell();
  } catch (error) {
    if (!(error instanceof PieceworkError && error.retryable)) throw error;
  }
}
