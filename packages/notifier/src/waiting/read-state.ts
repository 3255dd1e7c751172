import {
  DroppedError,
  ExpiredError,
  isOfLife,
  LostError,
  NotFoundError,
  type PresentState,
  type RequestReads,
  type Shards,
} from '@piecework/protocol';

/** Why a request is not there. */
type Absence = NotFoundError | ExpiredError | DroppedError | LostError;

/** What one read of a request means to a caller who waits for it. */
export type StateRead =
  | { readonly kind: 'waiting'; readonly state: PresentState }
  /** Open on the queue side and not created yet: its producer creates it, or the agenda gives it up. */
  | { readonly kind: 'creating' }
  | { readonly kind: 'complete'; readonly state: PresentState }
  | { readonly kind: 'absent'; readonly error: Absence };

/**
 * Reads the state of a request and, when the request is not there, finds out why.
 * @param seen the latest generation that the caller has seen, or 0
 */
export async function readState(
  request: RequestReads,
  queue: Pick<Shards, 'whereabouts'>,
  seen: number,
): Promise<StateRead> {
  const { id } = request.keys;
  const state = await request.state();
  const present = ifPresent(id, state, seen);
  if (present) return present;
  if (state?.status === 'dropped' && seen > 0) return absent(new DroppedError(id));

  const { open, endedAt } = await queue.whereabouts(id);
  if (open !== undefined && open > Math.max(seen, state?.generation ?? 0))
    return { kind: 'creating' };
  // It may have been created, and even ended, between the two reads above.
  const again = await request.state();
  const presentNow = ifPresent(id, again, seen);
  if (presentNow) return presentNow;
  if (again?.status === 'dropped') return absent(new DroppedError(id));
  // Only requests that ended are in the history; nothing shows that any other one has ended.
  // cure: a lost request is not reported as completed
  if (open === undefined && endedAt !== undefined) return absent(new ExpiredError(id));
  return absent(seen > 0 ? new LostError(id) : new NotFoundError(id));
}

const absent = (error: Absence): StateRead => ({ kind: 'absent', error });

function ifPresent(id: string, state: PresentState | null, seen: number): StateRead | undefined {
  if (!state || state.status === 'dropped' || state.status === 'void') return undefined;
  // The server lost its last writes, and with them the generation that was seen; or the id was used again.
  // cure: another life of an id is not taken for the one that was seen
  if (!isOfLife(seen, state)) return absent(new LostError(id));
  return { kind: state.status === 'complete' ? 'complete' : 'waiting', state };
}
