import {
  DroppedError,
  ExpiredError,
  LostError,
  NotFoundError,
  type RequestCommands,
  type RequestState,
  type Shards,
} from '@piecework/protocol';

/** Why a request is not there. */
type Absence = NotFoundError | ExpiredError | DroppedError | LostError;

/** What one look at a request tells somebody who waits for it. */
export type Looked =
  | { readonly kind: 'waiting'; readonly state: RequestState }
  /** Opened on the queue side and not created yet: it will be, or the agenda gives it up. */
  | { readonly kind: 'creating' }
  | { readonly kind: 'complete'; readonly state: RequestState }
  | { readonly kind: 'absent'; readonly error: Absence };

/**
 * Reads the state of a request and, when it is not there, finds out why. `seen` is the generation
 * that the one who waits has seen before, or 0.
 */
export async function look(
  request: RequestCommands,
  queue: Pick<Shards, 'whereabouts'>,
  seen: number,
): Promise<Looked> {
  const { id } = request.keys;
  const state = await request.state();
  const lives = living(id, state, seen);
  if (lives) return lives;
  if (state?.status === 'dropped' && seen > 0) return absent(new DroppedError(id));

  const { open, endedAt } = await queue.whereabouts(id);
  if (open !== undefined && open > Math.max(seen, state?.generation ?? 0))
    return { kind: 'creating' };
  // It may have been created, and even ended, between the two reads above.
  const again = await request.state();
  const livesNow = living(id, again, seen);
  if (livesNow) return livesNow;
  if (again?.status === 'dropped') return absent(new DroppedError(id));
  // Only who ended is in the history: what is not there, and not among those, nobody knows to have ended.
  if (open === undefined && endedAt !== undefined) return absent(new ExpiredError(id));
  return absent(seen > 0 ? new LostError(id) : new NotFoundError(id));
}

const absent = (error: Absence): Looked => ({ kind: 'absent', error });

function living(id: string, state: RequestState | null, seen: number): Looked | undefined {
  if (!state || state.status === 'dropped' || state.status === 'void') return undefined;
  if (state.status !== 'complete') return { kind: 'waiting', state };
  // The end of an earlier life: a server that lost its last writes has not the one that was seen.
  return state.generation < seen ? absent(new LostError(id)) : { kind: 'complete', state };
}
