import {
  type EndReason,
  RequestFailedError,
  type RequestOutcome,
  type RequestState,
} from '@piecework/protocol';

/** How many sub-requests are in which state. `total` is always the sum of the others. */
export interface Counts {
  readonly total: number;
  /** Waiting for a worker. */
  readonly ready: number;
  /**
   * A worker has read them: they run, are read ahead, or have ended and are about to be settled. So this may exceed the
   * limit of the request; `running` of its status and of a progress report never does.
   */
  readonly inFlight: number;
  /** Waiting for the time of their next attempt. */
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
  /** 'succeeded': no more failures than were tolerated; 'failed': more; 'cancelled'. */
  readonly status: RequestOutcome;
  /** `ready`, `inFlight` and `delayed` are 0. */
  readonly counts: Counts;
  /** Why it ended before all its work was done; undefined when all was done. */
  readonly endReason: EndReason | undefined;
  /** The generation of the request that completed. */
  readonly generation: number;

  /** @internal */
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
    const { requestId, status, counts, endReason } = this;
    throw new RequestFailedError(requestId, status, counts, endReason);
  }
}
