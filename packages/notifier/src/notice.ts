import type { RequestOutcome, RequestState } from '@piecework/protocol';

/** What a message on the channel of a request says; docs/protocol.md, Completion. */
export type Notice =
  | { readonly kind: 'complete'; readonly state: RequestState }
  | { readonly kind: 'dropped'; readonly generation: number }
  /** Anything else, as from an older version: a reason to look. */
  | { readonly kind: 'unclear' };

const COMPLETE = /^(\d+) (succeeded|failed|cancelled) (\d+) (\d+) (\d+) (\d+)$/;
const DROPPED = /^(\d+) dropped$/;

export function noticeOf(message: string): Notice {
  const dropped = DROPPED.exec(message);
  if (dropped) return { kind: 'dropped', generation: Number(dropped[1]) };
  const [text, , outcome, ...numbers] = COMPLETE.exec(message) ?? [];
  if (text === undefined) return { kind: 'unclear' };
  const generation = Number.parseInt(text, 10);
  const [total, succeeded, failed, cancelled] = numbers.map(Number) as Four;
  // The books of a complete request add up.
  if (succeeded + failed + cancelled !== total) return { kind: 'unclear' };
  const counts = { total, succeeded, failed, cancelled };
  return {
    kind: 'complete',
    state: { status: 'complete', generation, outcome: outcome as RequestOutcome, ...counts },
  };
}

type Four = [number, number, number, number];
