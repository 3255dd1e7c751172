/* What the model cannot say, and why: cures of test/mutations/cures.mjs without a variant. */

const TIME = 'time has no length in the model: without it things happen later, not never';

const HALTED = 'requests of the model are not paused or held back';
const FIXED = 'limit and priority are fixed numbers of the model';
const TOLERATED = 'how many failures are tolerated is not modelled';
const LIFE = 'a second life with what failed: one life of an id is modelled';

const TOLD =
  'a roll back of the model is no loss of what was told: who submits, and what he is told, is outside';

/** @type {{ cure: string, why: string }[]} */
export const unmodelled = [
  { cure: 'a living request takes the place of the intent that it refused', why: TOLD },
  { cure: 'a swap says that nothing was returned', why: TOLD },
  { cure: 'what lives is opened again where the queue side has lost it', why: TOLD },
  { cure: 'what is sealed is asked of both sides again behind a new connection', why: TOLD },
  { cure: 'an end that the server lost takes nothing off the queue side', why: TOLD },
  { cure: 'lost is not told as completed', why: TOLD },
  { cure: 'a server that was fit is looked at again', why: 'nothing is evicted in the model' },
  { cure: 'a lane in due order', why: 'an order among requests: one request is modelled' },
  { cure: 'what is due together is written back in due order', why: 'see a lane in due order' },
  { cure: 'tokens lost from a lane', why: 'lost tokens are modelled once, for a list' },
  {
    cure: 'tokens lost before their lane was heard of',
    why: 'who ticks knows all lists of the model',
  },
  { cure: 'explicit ids', why: 'a sub-request is its index' },
  { cure: 'op number in settle, permits', why: 'part of "absolute keep in settle"' },
  { cure: 'tokens counted by the leave', why: TIME },
  {
    cure: 'XACK-gated counting, all together',
    why: 'a worker of the model reports one by one; one by one it has a variant',
  },
  {
    cure: 'no success together once one was contested',
    why: 'a worker of the model reports one by one',
  },
  { cure: 'number of the hold', why: 'it decides what may be reported together' },
  { cure: 'top-up in retry', why: TIME },
  { cure: 'top-up in give-back', why: TIME },
  { cure: 'cancel of what a dead worker held', why: TIME },
  {
    cure: 'a note of having run alone goes with the next take',
    why: 'no configuration reaches it',
  },
  {
    cure: 'top-up in retry, when it is due',
    why: 'part of "top-up in reclaim": the same line of tend',
  },
  { cure: 'token epochs, of what a tend minted', why: TIME },
  { cure: 'partial loss', why: 'needs workers that stay busy for ever' },
  { cure: 'compare-and-set in write-back', why: TIME },
  { cure: 'producer lease, renewed by calls', why: TIME },
  { cure: 'parked tasks do not stop who serves them', why: TIME },
  { cure: 'a crash counts for all that was held', why: 'needs more than 100 entries' },
  { cure: 'a whole lease of grace after Redis was away', why: TIME },
  { cure: 'no grace upon grace', why: TIME },
  { cure: 'a look older than an outage takes nothing', why: TIME },
  { cure: 'a look that seems late is put off once', why: TIME },
  { cure: 'a dropped life is forgotten whatever is open', why: 'the history is not modelled' },
  { cure: 'what was dropped stays dropped', why: 'a drop is not cut in two and taken up again' },
  { cure: 'generation on drop', why: 'there is one drop, which is not sent again' },
  { cure: 'allow-oom on draining scripts', why: 'memory is not modelled' },
  {
    cure: 'give-back of what a lost reply brought',
    why: 'needs a worker that stays engaged for ever',
  },
  { cure: 'self-fencing', why: 'there is one clock in the model' },
  {
    cure: 'a suspect runs alone',
    why: 'one request, whose workers have one slot where crashes count',
  },
  { cure: 'producer lease, renewed by time', why: TIME },
  { cure: 'watchdog of the blocking connection', why: 'a dead connection is a token eaten' },
  { cure: 'a paused request grants, mints and hands out nothing', why: HALTED },
  { cure: 'top-up in resume', why: HALTED },
  { cure: 'a resume does not end a hold', why: HALTED },
  { cure: 'top-up in update', why: FIXED },
  { cure: 'permits above a lowered limit are taken back', why: FIXED },
  { cure: 'tokens of an old priority die', why: FIXED },
  { cure: 'a change of the priority is made once', why: FIXED },
  { cure: 'a hold is never made shorter', why: HALTED },
  { cure: 'the end of a hold is on the agenda', why: HALTED },
  { cure: 'the deadline is on the agenda', why: TIME },
  { cure: 'the first reason of an early end stays', why: 'why a request ended is not modelled' },
  { cure: 'too many failures end it in settle', why: TOLERATED },
  { cure: 'too many failures end it in tend', why: TOLERATED },
  { cure: 'a share of failures waits for the seal', why: TOLERATED },
  {
    cure: 'no further attempt when there is to be none',
    why: 'a failure of the model is tried again while attempts are left',
  },
  { cure: 'a checkpoint counts from its owner only', why: 'what handlers leave is not modelled' },
  { cure: 'a checkpoint goes with its success', why: 'what handlers leave is not modelled' },
  { cure: 'records rise while a redrive moves', why: LIFE },
  { cure: 'records of crashes rise while a redrive moves', why: LIFE },
  { cure: 'a failure moves once', why: LIFE },
  { cure: 'what was moved is not failed any more', why: LIFE },
  { cure: 'a redrive belongs to its owner', why: LIFE },
  { cure: 'only a complete request is redriven', why: LIFE },
  { cure: 'a refused redrive is refused for good', why: LIFE },
  { cure: 'a redriven request takes no new items', why: LIFE },
  { cure: 'permits end with their life', why: LIFE },
  { cure: 'a redriven request is kept', why: LIFE },
  { cure: 'a lost redrive is sealed', why: LIFE },
  { cure: 'what an earlier life cancelled stays so', why: LIFE },
];

/** Scripts that write and are no step of the model, and why. */
export const leftOut = [
  {
    script: 'hold',
    why: 'grants and mints nothing for a time, and time has no length in the model',
  },
  { script: 'redrive', why: 'a second life with what failed: one life of an id is modelled' },
  { script: 'run-again', why: 'as append, in that life; test/lua/redrive cuts it at each step' },
  {
    script: 'pause',
    why: 'a request that grants nothing for a while: one that nobody serves meanwhile',
  },
  { script: 'resume', why: 'mints what is missing, as tend does' },
  {
    script: 'update',
    why: 'limit and priority are fixed numbers of the model; it would multiply its states',
  },
  { script: 'pause-queue', why: 'workers that take no tokens: any may stand still already' },
  { script: 'resume-queue', why: 'see pause-queue' },
  ...['id-join', 'id-add', 'id-pull', 'id-resume', 'id-settle', 'id-drop'].map((script) => ({
    script,
    why: 'queues of ids have no requests; each script is a whole transition of one queue',
  })),
  {
    script: 'timed-put',
    why: 'a timed set shares no key with requests; each of its scripts decides alone, test/crash/nth-call-timed and test/invariants/timed play them together',
  },
  { script: 'timed-take', why: 'see timed-put' },
  { script: 'timed-settle', why: 'see timed-put' },
];

/** Scripts that change nothing, and so are no step of the model. */
export const readOnly = [
  { script: 'contended', why: 'decides when a worker yields: any moment is tried' },
  { script: 'inspect', why: 'a picture for people' },
  { script: 'id-inspect', why: 'see inspect' },
  { script: 'timed-counts', why: 'see inspect' },
];
