import {
  DroppedError,
  ExpiredError,
  NotFoundError,
  type RequestCommands,
  type RequestState,
  type Shards,
} from '@piecework/protocol';

/** What one look at a request tells somebody who waits for it. */
export type Looked =
  | { readonly kind: 'waiting'; readonly state: RequestState }
  /** Opened on the queue side and not created yet: it will be, or the agenda gives it up. */
  | { readonly kind: 'creating' }
  | { readonly kind: 'complete'; readonly state: RequestState }
  | { readonly kind: 'absent'; readonly error: NotFoundError | ExpiredError | DroppedError };

/**
 * Reads the state of a request and, when it is not there, finds out why. `seen` is the generation
 * that the one who waits has seen before, or 0.
 */
export async function look(
  request: RequestCommands,
  queue: Pick<Shards, 'whereabouts'>,
  seen: number,
): Promise<Looked> {
  const state = await request.state();
  const lives = living(state);
  if (lives) return lives;
  const { id } = request.keys;
  // It was there and is not: a tombstone says dropped, nothing at all that its retention is over.
  if (seen > 0) return { kind: 'absent', error: state ? gone(id, state) : new ExpiredError(id) };

  const { open, endedAt } = await queue.whereabouts(id);
  if (open !== undefined && open > (state?.generation ?? 0)) return { kind: 'creating' };
  // It may have been created, and even ended, between the two reads above.
  const again = await request.state();
  const livesNow = living(again);
  if (livesNow) return livesNow;
  if (again) return { kind: 'absent', error: gone(id, again) };
  const error = endedAt === undefined ? new NotFoundError(id) : new ExpiredError(id);
  return { kind: 'absent', error };
}

function living(state: RequestState | null): Looked | undefined {
  if (!state || state.status === 'dropped' || state.status === 'void') return undefined;
  return { kind: state.status === 'complete' ? 'complete' : 'waiting', state };
}

/** What a tombstone says; a generation that never came into being was never there. */
function gone(id: string, { status }: RequestState): DroppedError | NotFoundError {
  return status === 'dropped' ? new DroppedError(id) : new NotFoundError(id);
}
