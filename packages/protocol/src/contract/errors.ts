import { show, withoutPassword } from './shown-value.js';
import { readThrown } from './thrown.js';

/**
 * Every error that Piecework throws for an operating reason. Each has a stable `code` (docs/errors.md lists them all).
 * `retryable` says whether repeating the same call can help.
 */
export class PieceworkError extends Error {
  override readonly name: string = 'PieceworkError';
  readonly code: string;
  /** Whether the same call may succeed later without any change by the caller. */
  readonly retryable: boolean;

  constructor(
    message: string,
    { code, retryable = false, cause }: { code: string; retryable?: boolean; cause?: unknown },
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.retryable = retryable;
  }
}

/** An option, argument or item outside what is allowed. Nothing was written. */
export class InvalidOptionError extends PieceworkError {
  override readonly name = 'InvalidOptionError';
  readonly field: string;
  readonly value: unknown;
  readonly allowed: string;

  constructor(field: string, value: unknown, allowed: string) {
    const shown = withoutPassword(value);
    const what = allowed.startsWith('no such ')
      ? field
      : value === undefined
        ? `${field} is missing`
        : `${field}: ${show(shown)} is not allowed; allowed`;
    super(`${what}: ${allowed}`, { code: 'INVALID_OPTION' });
    this.field = field;
    this.value = shown;
    this.allowed = allowed;
  }
}

/** A payload or result that cannot be encoded, or is above its size limit. */
export class PayloadError extends PieceworkError {
  override readonly name = 'PayloadError';
  /** Place of the item among those that were given, from 0; undefined for what is no item, such as a result. */
  readonly index: number | undefined;

  constructor(message: string, cause?: unknown, index?: number) {
    super(index === undefined ? message : `item ${index}: ${message}`, { code: 'PAYLOAD', cause });
    this.index = index;
  }
}

/** Most characters of a message of user code that our message repeats. */
const SAID = 300;

const cut = (message: string): string =>
  message.length > SAID ? `${message.slice(0, SAID)}…` : message;

/** The item source of a submission threw. What became of the request depends on `onSourceError`. */
export class SourceError extends PieceworkError {
  override readonly name = 'SourceError';
  readonly requestId: string;

  constructor(requestId: string, kept: 'cancel' | 'leaveOpen', cause: unknown) {
    const fate = kept === 'cancel' ? 'was cancelled' : 'was left open';
    const { message } = readThrown(cause);
    const why = cut(message);
    const what = why === '' ? 'the item source failed' : `the item source failed: ${why}`;
    super(`${what}; request ${requestId} ${fate}`, { code: 'SOURCE', cause });
    this.requestId = requestId;
  }
}

/**
 * A request of this id is open or retained. It differs from the submitted one, or another process is still submitting
 * it.
 */
export class RequestExistsError extends PieceworkError {
  override readonly name = 'RequestExistsError';
  readonly requestId: string;
  readonly status: string;
  /**
   * What differs from the submitted request: names of options, 'items', or 'options' when it is not known which; empty
   * when no difference is known.
   */
  readonly differs: readonly string[];

  constructor(
    requestId: string,
    status: string,
    why = 'a request of this id exists; use another id, or drop it',
    differs: readonly string[] = [],
  ) {
    super(`${requestId}: ${why} (status ${status})`, { code: 'EXISTS' });
    this.requestId = requestId;
    this.status = status;
    this.differs = differs;
  }
}

/** Items cannot be added: the request was sealed, cancelled or completed meanwhile. */
export class SealedError extends PieceworkError {
  override readonly name = 'SealedError';
  readonly requestId: string;
  readonly status: string;

  constructor(requestId: string, status: string) {
    super(`${requestId} takes no more items: it is ${status}`, { code: 'SEALED' });
    this.requestId = requestId;
    this.status = status;
  }
}

/** A redrive was requested before the request was complete, or during another redrive of it. */
export class NotCompleteError extends PieceworkError {
  override readonly name = 'NotCompleteError';
  readonly requestId: string;
  readonly status: string;

  constructor(requestId: string, status: string) {
    super(`${requestId} is not complete: it is ${status}`, {
      code: 'NOT_COMPLETE',
      retryable: true,
    });
    this.requestId = requestId;
    this.status = status;
  }
}

/** No request of this id is known, neither to the server nor to the caller. */
export class NotFoundError extends PieceworkError {
  override readonly name = 'NotFoundError';

  constructor(requestId: string) {
    super(
      `no request ${requestId} is known: it was never submitted here, or the server lost it (a restart without its data, a failover)`,
      { code: 'NOT_FOUND' },
    );
  }
}

/** The request completed, but its retention has passed. */
export class ExpiredError extends PieceworkError {
  override readonly name = 'ExpiredError';

  constructor(requestId: string) {
    super(`request ${requestId} completed; its retention has passed`, { code: 'EXPIRED' });
  }
}

/** Results are missing: Redis lost its last writes, or a redrive took failures back before they were read. */
export class ResultsLostError extends PieceworkError {
  override readonly name = 'ResultsLostError';
  readonly requestId: string;
  /** How many are missing; 0: not known. */
  readonly missing: number;

  /** `why`: in words. @default Redis lost its last writes, or evicted keys to make room */
  constructor(
    requestId: string,
    missing: number,
    why = 'Redis lost its last writes, or evicted keys to make room',
  ) {
    super(
      `${missing || 'some'} results of request ${requestId} are missing: ${why}; read the results again from the start, without a cursor`,
      { code: 'RESULTS_LOST', retryable: true },
    );
    this.requestId = requestId;
    this.missing = missing;
  }
}

/** The results were requested of a request that keeps none: it was submitted with `results: 'discard'`. */
export class ResultsDiscardedError extends PieceworkError {
  override readonly name = 'ResultsDiscardedError';
  readonly requestId: string;

  constructor(requestId: string) {
    super(
      `request ${requestId} keeps no results: it was submitted with results 'discard'; its outcome and its failures are kept`,
      { code: 'RESULTS_DISCARDED' },
    );
    this.requestId = requestId;
  }
}

/**
 * The request, or a part of it, no longer exists, and there is no sign that it ended. The server may have lost its last
 * writes, or all its data, as in a failover to a replica that was behind or a restart from a snapshot; or its keys were
 * deleted. Thrown by a submission it is `retryable`: the same id may be submitted again.
 */
export class LostError extends PieceworkError {
  override readonly name = 'LostError';
  readonly requestId: string;

  constructor(requestId: string, retryable = false) {
    super(
      `request ${requestId}, or a part of it, no longer exists, and is not known to have ended: the server may have lost it (a failover, a restart from a snapshot, deleted keys); submit it again, or redrive it again if it was redriven`,
      { code: 'LOST', retryable },
    );
    this.requestId = requestId;
  }
}

/** The request was dropped. */
export class DroppedError extends PieceworkError {
  override readonly name = 'DroppedError';

  constructor(requestId: string) {
    super(`request ${requestId} was dropped`, { code: 'DROPPED' });
  }
}

/** The wait took longer than `timeoutMs`. */
export class TimeoutError extends PieceworkError {
  override readonly name = 'TimeoutError';

  /**
   * `cause`: the error that prevented the wait from learning the state, if there was one · `why`: what is waited for
   * and what to do, if that is known.
   */
  constructor(what: string, timeoutMs: number, cause?: unknown, why?: string) {
    const known = cause instanceof Error ? cause.message : why;
    const because = known ? `; ${known}` : '';
    super(`${what}: not within ${timeoutMs} ms${because}`, {
      code: 'TIMEOUT',
      retryable: true,
      cause,
    });
  }
}

/** The `signal` that was passed in was aborted. */
export class AbortError extends PieceworkError {
  override readonly name = 'AbortError';

  constructor(what: string, cause?: unknown) {
    // The default reason of a signal adds nothing.
    const { name, message } = readThrown(cause);
    const hasReason = cause !== undefined && name !== 'AbortError' && message !== '';
    const why = hasReason ? `: ${cut(message)}` : '';
    super(`${what}: aborted${why}`, { code: 'ABORTED', cause });
  }
}

/** Why a request ended before its work was done, in words. */
export const ENDED_BY = {
  deadline: 'its deadline passed',
  failures: 'too many of its sub-requests failed',
  cancel: 'it was cancelled',
  'producer-lost': 'its producer was lost before all items were in',
};

/** The request did not succeed; thrown by `outcome.throwIfFailed()`. */
export class RequestFailedError extends PieceworkError {
  override readonly name = 'RequestFailedError';
  readonly status: string;

  constructor(
    requestId: string,
    status: string,
    counts: { readonly total: number; readonly failed: number; readonly cancelled: number },
    endReason?: keyof typeof ENDED_BY,
  ) {
    const { total, failed, cancelled } = counts;
    const early = endReason ? `${ENDED_BY[endReason]}; ` : '';
    const others = cancelled > 0 ? `, ${cancelled} cancelled` : '';
    super(
      `request ${requestId} ${status}: ${early}${failed} of ${total} sub-requests failed${others}`,
      {
        code: 'REQUEST_FAILED',
      },
    );
    this.status = status;
  }
}

/** A handler throws this so that its sub-request is not retried. */
export class UnrecoverableError extends PieceworkError {
  override readonly name = 'UnrecoverableError';

  constructor(message: string, cause?: unknown) {
    super(message, { code: 'UNRECOVERABLE', cause });
  }
}

/**
 * A handler throws this to hold the request, or the queue, back. Its sub-request is returned and runs again later; no
 * attempt is counted. Made by `ctx.holdRequest(ms)` and `ctx.holdQueue(ms)`.
 */
export class HeldError extends PieceworkError {
  override readonly name = 'HeldError';

  constructor(what: string, ms: number) {
    super(`${what} is held back for ${ms} ms`, { code: 'HELD', retryable: true });
  }
}

/** The request is complete, or being cancelled, so it cannot be paused, resumed or updated. */
export class EndedError extends PieceworkError {
  override readonly name = 'EndedError';
  readonly requestId: string;
  readonly status: string;

  constructor(requestId: string, status: string) {
    super(`${requestId} has already ended: it is ${status}`, { code: 'ENDED' });
    this.requestId = requestId;
    this.status = status;
  }
}

/** The handle was closed before the call, or before the call ended. */
export class ClosedError extends PieceworkError {
  override readonly name = 'ClosedError';

  /** @param missing how many appended items were not confirmed before the close */
  constructor(what: string, missing = 0) {
    const items = missing === 1 ? '1 appended item' : `${missing} appended items`;
    const unconfirmed = missing > 0 ? ` before ${items} could be confirmed` : '';
    super(`${what} is closed${unconfirmed}`, { code: 'CLOSED' });
  }
}

/** Redis cannot be reached. The last command of the call was not sent; earlier ones of the same call may have been. */
export class ConnectionError extends PieceworkError {
  override readonly name = 'ConnectionError';

  constructor(message: string, cause?: unknown) {
    super(message, { code: 'CONNECTION', retryable: true, cause });
  }
}

/**
 * A call was sent and its reply is missing: whether it was carried out is not known. Repeating it with the same id is
 * safe.
 */
export class IndeterminateError extends PieceworkError {
  override readonly name = 'IndeterminateError';
  readonly requestId: string;

  constructor(requestId: string, cause: unknown) {
    super(
      `${requestId}: Redis did not answer, so the call may have been carried out; repeating it with this id is safe`,
      { code: 'INDETERMINATE', retryable: true, cause },
    );
    this.requestId = requestId;
  }
}

/** The request exists and continues, but its durability was not confirmed in time. */
export class DurabilityError extends PieceworkError {
  override readonly name = 'DurabilityError';
  readonly requestId: string;

  constructor(requestId: string, durability: string, cause?: unknown) {
    super(
      `${requestId}: sealed, but durability '${durability}' was not confirmed in time; the request continues, and submitting it again with this id is safe`,
      { code: 'DURABILITY', retryable: true, cause },
    );
    this.requestId = requestId;
  }
}

/** The server can be reached but cannot serve Piecework as it is; the message says what to change. */
export class ServerError extends PieceworkError {
  override readonly name = 'ServerError';

  constructor(
    message: string,
    options: {
      code:
        | 'TOO_OLD'
        | 'EVICTING'
        | 'CLUSTER'
        | 'CLUSTER_DOWN'
        | 'SLOT_MOVES'
        | 'FULL'
        | 'READ_ONLY'
        | 'NO_REPLICA'
        | 'NO_FSYNC'
        | 'NO_RIGHT'
        | 'PASSWORD'
        | 'NO_DB'
        | 'REDIS';
      retryable?: boolean;
      cause?: unknown;
    },
  ) {
    super(message, options);
  }
}
