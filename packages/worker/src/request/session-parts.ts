import type { Outcome, Place } from '@piecework/protocol';
import type { Shard } from '../fetch/shard.js';
import type { Attempt } from '../handler/attempt.js';
import { RunLog } from '../report/run-log.js';
import type { Holder } from '../shared/isolation.js';
import type { Waiting } from '../shared/waiting-room.js';
import type { WorkerContext } from '../shared/worker-context.js';
import { Attempts } from './attempts.js';
import { HandOver, mayPassOn, type Successors } from './hand-over.js';
import { MemoryRoom } from './memory-room.js';
import { Pace } from './pace.js';
import { Reading } from './reading.js';
import { Remainder } from './remainder.js';
import { SessionCalls } from './session-calls.js';
import { SessionLease } from './session-lease.js';
import type { SessionMode } from './session-mode.js';
import { Settling } from './settling.js';
import { SlotAccount } from './slot-account.js';
import { Suspects } from './suspects.js';
import { type AskContention, TimeSlice } from './time-slice.js';
import { TokenReturn } from './token-return.js';

/** What the parts know of their session. */
export interface Session extends Holder {
  readonly id: string;
  readonly generation: number;
  readonly shard: Shard;
  /** Whether it left so that somebody else gets a turn. */
  readonly yielding: boolean;
}

/** What a session asks of its worker. */
export interface SessionHooks {
  /** Pauses the queue for so many ms. */
  readonly holdQueue: (ms: number) => Promise<void>;
  readonly askContention: AskContention;
  /** Tokens that came for slots that are free now. */
  readonly onTokens: (tokens: readonly string[], from: Session) => void;
  /** A request in the waiting room whose turn it is. */
  readonly onTurn: (waiting: Waiting) => void;
  /** Gives free slots to another request of this place that began its turn here. Returns whether one took them. */
  readonly onFree: (place: Place) => boolean;
  /** Enters others with the slots of this session, which become free one by one. Returns whether there are any. */
  readonly onHandOver: (successors: Successors, account: SlotAccount, from: Session) => boolean;
}

/** What the parts ask of their session. */
interface Callbacks {
  readonly onAttemptEnd: (
    attempt: Attempt,
    outcome: Outcome | undefined,
    underLease: boolean,
  ) => void;
  readonly onLost: (why: string) => void;
  readonly onCancelling: () => void;
  /** What was read ahead was given back. */
  readonly onReturned: () => void;
  readonly runSuspects: (company: number) => void;
  /** A slot that another session promised is free now. */
  readonly onSlot: () => void;
  /** Slots were promised to others. */
  readonly onHandOver: () => void;
}

/** Makes the parts of a session, which know each other as far as they have to. */
export function partsOf(
  context: WorkerContext,
  session: Session,
  hooks: SessionHooks,
  mode: SessionMode,
  callbacks: Callbacks,
) {
  const { id, generation, shard } = session;
  const { slots } = shard;
  const { logger, flood, events } = context;
  const log: RunLog = new RunLog(session, logger, flood, events.measuring, () => {
    const { task } = attempts;
    return { queue: shard.name, ...(task ? { task } : {}) };
  });
  const { usual, growth } = context.known.of(id, generation);
  const calls = new SessionCalls(context, shard, id, generation);
  const row = context.renewal.rowOf(id, generation);
  const room = new MemoryRoom(context, calls, growth);
  const holdRequest = async (ms: number) => {
    await calls.holdRequest(ms);
    // cure: a hold starts nothing of what was read ahead
    reading.returnAhead();
  };
  const holds = { request: holdRequest, queue: hooks.holdQueue };
  const onEnd = callbacks.onAttemptEnd;
  const ofAttempts = { requestId: id, slots, row, usual, log, holds, onEnd };
  const attempts: Attempts = new Attempts(context, ofAttempts);
  const lease = new SessionLease(context, calls, attempts, row, callbacks);
  const settling = new Settling(context, {
    requestId: id,
    shard,
    calls,
    attempts,
    room,
    usual,
    log,
  });
  const suspects = new Suspects(context, session, mode, log, {
    run: callbacks.runSuspects,
    giveBack: (entry) => settling.giveBack(entry),
    register: (company, waiting) => calls.runSuspects(company, waiting),
    fence: () => void lease.fence(),
    start: (suspect, now) => attempts.start(suspect, now),
  });
  const account = new SlotAccount(slots, callbacks.onSlot);
  const pace = new Pace(usual, context.lately, context.settleDelayMs, () => lease.permits);
  const remainder = new Remainder(pace, () => lease.permits);
  const reading: Reading = new Reading({
    mode,
    lease,
    attempts,
    suspects,
    settling,
    slots,
    account,
    calls,
    pace,
    remainder,
    mayReadAhead: context.mayReadAhead,
    quantumMs: context.quantumMs,
    onReturned: callbacks.onReturned,
  });
  const slice = new TimeSlice(
    context,
    pace,
    () => ({ id, generation, place: tokens.place }),
    hooks.askContention,
    () => mayPassOn(shard, pace),
  );
  const tokens: TokenReturn = new TokenReturn(context, session, mode, pace, {
    onTokens: (taken) => hooks.onTokens(taken, session),
    onTurn: hooks.onTurn,
    onFree: hooks.onFree,
  });
  const handOver = new HandOver(
    shard,
    { mode, pace, reading, tokens, slice, account },
    {
      onSuccessors: (successors) => hooks.onHandOver(successors, account, session),
      onHandOver: callbacks.onHandOver,
    },
  );
  return {
    log,
    calls,
    room,
    attempts,
    lease,
    settling,
    suspects,
    pace,
    reading,
    slice,
    tokens,
    account,
    handOver,
  };
}
