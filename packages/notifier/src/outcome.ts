import {
  type EndReason,
  RequestFailedError,
  type RequestOutcome,
  type RequestState,
} from '@piecework/protocol';

/** Where the sub-requests of a request are. `total` is always the sum of the others. */
export interface Counts {
  readonly total: number;
  readonly ready: number;
  readonly inFlight: number;
  readonly delayed: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
}

/** Counts of a complete request: everything is settled. */
export function finalCounts({ total, succeeded, failed, cancelled }: RequestState): Counts {
  return { total, ready: 0, inFlight: 0, delayed: 0, succeeded, failed, cancelled };
}

/** How a request ended. */
export class CompletionOutcome {
  readonly requestId: string;
  readonly status: RequestOutcome;
  readonly counts: Counts;
  /** Why it ended before its work was done; undefined when it did not. */
  readonly endReason: EndReason | undefined;
  /** Which life of the id this was. */
  readonly generation: number;

  constructor(requestId: string, state: RequestState) {
    this.requestId = requestId;
    this.status = state.outcome as RequestOutcome;
    this.generation = state.generation;
    this.counts = finalCounts(state);
    this.endReason = state.endReason || undefined;
  }

  /** @throws RequestFailedError unless the request succeeded */
  throwIfFailed(): this {
    if (this.status === 'succeeded') return this;
    const { failed, total } = this.counts;
    throw new RequestFailedError(this.requestId, this.status, failed, total);
  }
}
