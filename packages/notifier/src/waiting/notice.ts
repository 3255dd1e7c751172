import {
  type EndReason,
  type RequestOutcome,
  type RequestState,
  type ResultsEntry,
  recordsOf,
} from '@piecework/protocol';

/** What a message on the channel of a request says; docs/protocol.md, Completion. */
export type Notice =
  | {
      readonly kind: 'complete';
      readonly state: RequestState;
      /** All results, if they are few and the message was sent to who submitted the request. */
      readonly results?: readonly ResultsEntry[];
    }
  | { readonly kind: 'dropped'; readonly generation: number }
  /** Anything else, as from another version: a reason to read the state. */
  | { readonly kind: 'unclear' };

const COMPLETE = /^(\d+) (succeeded|failed|cancelled) (\d+) (\d+) (\d+) (\d+) ([a-z-]+)$/;
const DROPPED = /^(\d+) dropped$/;
/** Before each record of the results: JSON always escapes this character, and the next. */
const RECORD = '\x1d';
const SEPARATOR = '\x1e';

export function noticeOf(message: string): Notice {
  const dropped = DROPPED.exec(message);
  if (dropped) return { kind: 'dropped', generation: Number(dropped[1]) };
  const [head = '', ...records] = message.split(RECORD);
  const [text, , outcome, ...numbers] = COMPLETE.exec(head) ?? [];
  if (text === undefined) return { kind: 'unclear' };
  const generation = Number.parseInt(text, 10);
  const reason = numbers.pop();
  const endReason = reason === '-' ? '' : (reason as EndReason);
  const [total, succeeded, failed, cancelled] = numbers.map(Number) as Four;
  // The counts of a complete request add up.
  if (succeeded + failed + cancelled !== total) return { kind: 'unclear' };
  const counts = { total, succeeded, failed, cancelled };
  const state: RequestState = {
    status: 'complete',
    generation,
    outcome: outcome as RequestOutcome,
    endReason,
    ...counts,
  };
  return { kind: 'complete', state, ...resultsIn(records, total) };
}

/** The results in a message; nothing unless they are all there. */
function resultsIn(
  texts: readonly string[],
  total: number,
): { readonly results?: readonly ResultsEntry[] } {
  if (texts.length === 0) return {};
  const results = texts.map((text) => {
    const end = text.indexOf(SEPARATOR);
    return { position: text.slice(0, end), records: recordsOf(['ok', text.slice(end)]) };
  });
  const count = results.reduce((sum, { records }) => sum + records.length, 0);
  // cure: results that a message brings are all of them
  return count === total ? { results } : {};
}

type Four = [number, number, number, number];

/** A message to who submitted a request: the channel of the request, a space, and the notice. */
export function addressed(message: string): { readonly channel: string; readonly notice: string } {
  const end = message.indexOf(' ');
  return { channel: message.slice(0, end), notice: message.slice(end + 1) };
}
