/*
 * What `npm run model` checks: configurations of piecework.pml, which have to hold in every state,
 * and variants, each of them a configuration without one cure, which have to fail. The tests go through the
 * small ones, and the variants of the medium ones too: they end where they fail.
 */

/**
 * @typedef {{ name: string, faults: string, flags: string[], size: 'small' | 'medium' | 'full' }} Configuration
 * @typedef {{ cure: string, flag: string, configuration: string }} Variant
 */

/** Looked at from where the whole request is submitted: the producer has configurations of its own. */
const SUBMITTED = 'SUBMITTED';
/** … as a compact request, which a worker with a slot for each sub-request enters as a whole. */
const COMPACT = [SUBMITTED, 'COMPACT'];
const TWO_SLOTS = ['N=2', 'LIMIT=2', 'SLOTS=2'];

/** @type {Configuration[]} */
export const configurations = [
  {
    name: 'two workers',
    faults: 'none; time slices end',
    flags: [SUBMITTED, 'N=2', 'LIMIT=2', 'YIELD=1'],
    size: 'small',
  },
  {
    name: 'deaths',
    faults: 'a worker dies, a lease ends under a living one',
    flags: [SUBMITTED, 'N=1', 'DIE=1', 'ZOMBIE=1'],
    size: 'medium',
  },
  {
    name: 'eaten tokens',
    faults: 'a token is popped by nobody; limit 2',
    flags: [SUBMITTED, 'N=2', 'LIMIT=2', 'EAT=1'],
    size: 'medium',
  },
  {
    name: 'zombies',
    faults: 'a lease ends under a living worker',
    flags: [SUBMITTED, 'N=2', 'ZOMBIE=1'],
    size: 'medium',
  },
  {
    name: 'retries',
    faults: 'a handler fails, a lease ends',
    flags: [SUBMITTED, 'N=1', 'FAIL=1', 'ATTEMPTS=2', 'ZOMBIE=1'],
    size: 'full',
  },
  {
    name: 'lost replies',
    faults: 'a reply is lost, a handler fails',
    flags: [SUBMITTED, 'N=1', 'LOST=1', 'FAIL=1', 'ATTEMPTS=2'],
    size: 'medium',
  },
  {
    name: 'repeats',
    faults: 'any call comes again, at once or late; a handler fails',
    flags: [
      SUBMITTED,
      'N=2',
      'AGAIN=1',
      'FAIL=1',
      'ATTEMPTS=3',
      'RETRY_AT_ONCE',
      'YIELD=1',
      'TICKERS=1',
    ],
    size: 'full',
  },
  {
    name: 'two slots',
    faults: 'any call comes again; each worker has two slots; nobody ticks',
    flags: [SUBMITTED, 'N=2', 'LIMIT=2', 'SLOTS=2', 'AGAIN=1', 'W=1'],
    size: 'small',
  },
  {
    name: 'zombies with two slots',
    faults: 'a lease ends under a living worker; each worker has two slots',
    flags: [SUBMITTED, 'N=2', 'LIMIT=2', 'SLOTS=2', 'ZOMBIE=1'],
    size: 'full',
  },
  {
    name: 'producer',
    faults: 'producer and ticker die, or are slow',
    flags: ['N=2', 'W=1', 'PRODUCER_DIES=1', 'TICKER_DIES=1'],
    size: 'medium',
  },
  {
    name: 'slow producer',
    faults: 'its intent is tended before it is used, it dies',
    flags: ['N=1', 'W=1', 'LATE=1', 'PRODUCER_DIES=1'],
    size: 'small',
  },
  {
    name: 'call sent twice',
    faults: 'any call comes again',
    flags: ['N=1', 'W=1', 'AGAIN=1'],
    size: 'small',
  },
  {
    name: 'repeats of the producer',
    faults: 'any call comes again, the producer dies',
    flags: ['N=1', 'W=1', 'AGAIN=1', 'PRODUCER_DIES=1', 'LATE=1'],
    size: 'full',
  },
  {
    name: 'two generations',
    faults: 'the generation before is dropped, any call comes again',
    flags: ['N=1', 'W=1', 'RETAINED', 'DROP=1', 'AGAIN=1'],
    size: 'full',
  },
  {
    name: 'two submitters',
    faults: 'of one id; the generation before is dropped',
    flags: ['N=1', 'W=1', 'RETAINED', 'PRODUCERS=2', 'DROP=1'],
    size: 'full',
  },
  {
    name: 'retained',
    faults: 'two submitters of one id, its retention ends, it is tended early',
    flags: ['N=1', 'W=1', 'PRODUCERS=2', 'EXPIRE=1', 'LATE=1'],
    size: 'full',
  },
  {
    name: 'cancel',
    faults: 'cancelled at any time, a worker dies',
    flags: [SUBMITTED, 'N=2', 'CANCEL=1', 'DIE=1'],
    size: 'small',
  },
  {
    name: 'at once',
    faults: 'nobody ticks: nothing may need a tend',
    flags: ['N=2', 'LIMIT=1', 'TICKERS=0'],
    size: 'small',
  },
  {
    name: 'cancelled at once',
    faults: 'cancelled, a worker closes, a handler fails; nobody ticks',
    flags: [
      SUBMITTED,
      'N=2',
      'CANCEL=1',
      'CLOSE=1',
      'FAIL=1',
      'ATTEMPTS=2',
      'RETRY_AT_ONCE',
      'TICKERS=0',
    ],
    size: 'small',
  },
  {
    name: 'one tend',
    faults: 'a lease ends, and nobody ticks but for that; cancelled',
    flags: [SUBMITTED, 'N=1', 'ZOMBIE=1', 'CANCEL=1', 'TICKS_AT_LEASES'],
    size: 'small',
  },
  {
    name: 'crashes',
    faults: 'two leases end, a handler fails; the second crash is the last',
    flags: [SUBMITTED, 'N=1', 'W=1', 'ZOMBIE=2', 'FAIL=1', 'ATTEMPTS=2', 'MAX_CRASHES=2'],
    size: 'small',
  },
  {
    name: 'parked',
    faults: 'one worker does not serve the task',
    flags: [SUBMITTED, 'N=2', 'UNSERVED', 'LOST=1'],
    size: 'medium',
  },
  {
    name: 'notifier',
    faults: 'a notice is lost, a connection is cut',
    flags: [SUBMITTED, 'N=1', 'W=1', 'NOTIFIER', 'SLOW_TIMER', 'CUTS=1', 'NOTICES_LOST=1'],
    size: 'small',
  },
  {
    name: 'notifier without a timer',
    faults: 'a connection is cut',
    flags: [SUBMITTED, 'N=1', 'W=1', 'NOTIFIER', 'CUTS=1'],
    size: 'small',
  },
  {
    name: 'notifier, nothing lost',
    faults: 'none; completes before, while and after it is subscribed',
    flags: [SUBMITTED, 'N=1', 'W=1', 'NOTIFIER'],
    size: 'small',
  },
  {
    name: 'no publish',
    faults: 'every publish is refused',
    flags: [SUBMITTED, 'N=1', 'W=1', 'NOTIFIER', 'SLOW_TIMER', 'PUBLISH_REFUSED'],
    size: 'small',
  },
  {
    name: 'queue side rolled back',
    faults: 'its last writes are lost, a worker dies',
    flags: [SUBMITTED, 'N=1', 'ROLLBACK_QUEUE=1', 'DIE=1'],
    size: 'small',
  },
  {
    name: 'request side rolled back',
    faults: 'its last writes are lost, a worker dies',
    flags: [SUBMITTED, 'N=1', 'ROLLBACK_REQUEST=1', 'DIE=1'],
    size: 'medium',
  },
  {
    name: 'two of each',
    faults: 'a worker dies, a token is eaten; limit 2',
    flags: [SUBMITTED, 'N=2', 'LIMIT=2', 'DIE=1', 'EAT=1'],
    size: 'full',
  },
  {
    name: 'compact',
    faults: 'a worker dies; each has two slots',
    flags: [...COMPACT, ...TWO_SLOTS, 'DIE=1'],
    size: 'medium',
  },
  {
    name: 'compact, slow to enter',
    faults: 'a token is taken for lost before it is entered',
    flags: [...COMPACT, 'N=1', 'SLOW=1'],
    size: 'small',
  },
  {
    name: 'compact, leases end',
    faults: 'a lease ends under a living worker, a worker dies',
    flags: [...COMPACT, 'N=1', 'ZOMBIE=1', 'DIE=1'],
    size: 'medium',
  },
  {
    name: 'compact, repeats',
    faults: 'any call comes again, at once or late; a handler fails',
    flags: [...COMPACT, ...TWO_SLOTS, 'W=1', 'AGAIN=1', 'FAIL=1'],
    size: 'medium',
  },
  {
    name: 'compact, late calls',
    faults: 'any call comes again, also after the lease of its worker was withdrawn',
    flags: [...COMPACT, 'N=1', 'W=1', 'AGAIN=1', 'ZOMBIE=1'],
    size: 'small',
  },
  {
    name: 'compact, not served',
    faults: 'one worker does not serve the task; a reply is lost',
    flags: [...COMPACT, 'N=1', 'UNSERVED', 'LOST=1'],
    size: 'small',
  },
  {
    name: 'compact, cancelled',
    faults: 'cancelled at any time, a handler fails',
    flags: [...COMPACT, ...TWO_SLOTS, 'CANCEL=1', 'FAIL=1'],
    size: 'medium',
  },
  {
    name: 'compact, later',
    faults: 'it begins later and has a deadline; the only worker dies',
    flags: [...COMPACT, 'N=1', 'W=1', 'HELD', 'DEADLINE', 'DIE=1'],
    size: 'small',
  },
  {
    name: 'compact, rolled back',
    faults: 'the last writes of the request side are lost',
    flags: [...COMPACT, 'N=1', 'W=1', 'ROLLBACK_REQUEST=1'],
    size: 'small',
  },
  {
    name: 'compact, zombies with two slots',
    faults: 'a lease ends under a living worker; each has two slots',
    flags: [...COMPACT, ...TWO_SLOTS, 'ZOMBIE=1'],
    size: 'full',
  },
];

/** @type {Variant[]} */
export const variants = [
  { cure: 'XACK-gated counting', flag: 'NO_XACK_GATE', configuration: 'zombies' },
  {
    cure: 'XACK-gated counting, of a part of a batch',
    flag: 'NO_XACK_GATE_EACH',
    configuration: 'zombies with two slots',
  },
  { cure: 'owner check on failure', flag: 'NO_OWNER_CHECK', configuration: 'retries' },
  { cure: 'due entry removed on success', flag: 'NO_DUE_REMOVED', configuration: 'zombies' },
  {
    cure: 'delayed work under the reserved consumer',
    flag: 'NO_RESERVED_CONSUMER',
    configuration: 'lost replies',
  },
  {
    cure: 'absolute totals in append',
    flag: 'NO_ABSOLUTE_TOTALS',
    configuration: 'call sent twice',
  },
  {
    cure: 'tombstone for an intent without a request',
    flag: 'NO_TOMBSTONE',
    configuration: 'slow producer',
  },
  {
    cure: 'tombstone beyond the retention of the generation before',
    flag: 'NO_VOID_BEYOND_RETENTION',
    configuration: 'retained',
  },
  {
    cure: 'a refused generation is refused to everybody',
    flag: 'NO_REFUSED_GENERATION',
    configuration: 'two submitters',
  },
  {
    cure: 'generation on finish',
    flag: 'NO_GENERATION_ON_FINISH',
    configuration: 'two generations',
  },
  { cure: 'op number in enter', flag: 'NO_OP_IN_ENTER', configuration: 'repeats' },
  {
    cure: 'op number in enter, beyond the leave',
    flag: 'NO_OP_BEYOND_LEAVE',
    configuration: 'repeats',
  },
  { cure: 'op number in settle, leave', flag: 'NO_OP_IN_SETTLE', configuration: 'repeats' },
  {
    cure: 'op number in settle, failures',
    flag: 'NO_OP_IN_SETTLE_FAILURES',
    configuration: 'repeats',
  },
  { cure: 'absolute keep in settle', flag: 'NO_ABSOLUTE_KEEP', configuration: 'two slots' },
  { cure: 'top-up in leave', flag: 'NO_TOPUP_LEAVE', configuration: 'at once' },
  { cure: 'top-up in append', flag: 'NO_TOPUP_APPEND', configuration: 'at once' },
  { cure: 'top-up in reclaim', flag: 'NO_TOPUP_TEND', configuration: 'deaths' },
  { cure: 'token epochs', flag: 'NO_EPOCHS', configuration: 'eaten tokens' },
  {
    cure: 'reclaim from any consumer without a permit',
    flag: 'NO_RECLAIM_FROM_ANY',
    configuration: 'deaths',
  },
  { cure: 'consumer deleted only when empty', flag: 'NO_EMPTY_CHECK', configuration: 'deaths' },
  {
    cure: 'cancel of returned sub-requests',
    flag: 'NO_CANCEL_OF_GIVEN_BACK',
    configuration: 'cancelled at once',
  },
  {
    cure: 'attempts counted apart from deliveries',
    flag: 'NO_TRIES',
    configuration: 'lost replies',
  },
  {
    cure: 'completion state before publish',
    flag: 'NO_STATE_BEFORE_PUBLISH',
    configuration: 'no publish',
  },
  { cure: 'producer lease', flag: 'NO_PRODUCER_LEASE', configuration: 'producer' },
  {
    cure: 'the last crash counts only in isolation',
    flag: 'NO_ALONE_CHECK',
    configuration: 'crashes',
  },
  { cure: 'a late read is no crash', flag: 'NO_LATE_READ', configuration: 'crashes' },
  { cure: 'intent before create', flag: 'NO_INTENT_FIRST', configuration: 'producer' },
  { cure: 'leave before push', flag: 'NO_LEAVE_BEFORE_PUSH', configuration: 'at once' },
  {
    cure: 'give-back of unstarted reads',
    flag: 'NO_GIVE_BACK_UNSTARTED',
    configuration: 'one tend',
  },
  {
    cure: 're-read after reconnect',
    flag: 'NO_READ_AFTER_RECONNECT',
    configuration: 'notifier without a timer',
  },
  {
    cure: 'state re-read by the waiter, once it is subscribed',
    flag: 'NO_READ_ONCE_SUBSCRIBED',
    configuration: 'notifier, nothing lost',
  },
  {
    cure: 'state re-read by the waiter, from time to time',
    flag: 'NO_SLOW_READ',
    configuration: 'notifier',
  },
  {
    cure: 'repair of what the queue side lost',
    flag: 'NO_REPAIR',
    configuration: 'queue side rolled back',
  },
  {
    cure: 'a generation is remembered until its create is too old',
    flag: 'SHORT_RETENTION',
    configuration: 'retained',
  },
  {
    cure: 'parked requests are offered to workers that serve them',
    flag: 'NO_PARKED_FOUND',
    configuration: 'parked',
  },
  {
    cure: 'a compact request has one worker',
    flag: 'NO_ONE_WORKER',
    configuration: 'compact, slow to enter',
  },
  {
    cure: 'a compact request is for workers that serve its task',
    flag: 'NO_SERVED_COMPACT',
    configuration: 'compact, not served',
  },
  {
    cure: 'a compact request is settled by the worker that has it',
    flag: 'NO_HOLDER_CHECK',
    configuration: 'compact, rolled back',
  },
  {
    cure: 'a compact request is settled as a whole',
    flag: 'NO_WHOLE_SETTLE',
    configuration: 'compact',
  },
  {
    cure: 'what is compact may be with a worker, in a stream',
    flag: 'NO_PENDING_IN_STREAM',
    configuration: 'compact',
  },
  {
    cure: 'a tend expands what a worker has',
    flag: 'NO_EXPANDING_TEND',
    configuration: 'compact',
  },
  {
    cure: 'the deadline of a compact request ends it',
    flag: 'NO_COMPACT_DEADLINE',
    configuration: 'compact, later',
  },
  {
    cure: 'a held request is submitted without a token',
    flag: 'NO_HELD_SUBMIT',
    configuration: 'compact, later',
  },
  {
    cure: 'a compact request that is held has no token',
    flag: 'NO_WAIT_FOR_START',
    configuration: 'compact, later',
  },
];
