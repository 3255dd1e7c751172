/* What the model cannot say, and why: cures of test/mutations/cures.mjs without a variant. */

const TIME = 'time has no length in the model: without it things happen later, not never';

/** @type {{ cure: string, why: string }[]} */
export const unmodelled = [
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
];

/** Scripts that change nothing, and so are no step of the model. */
export const readOnly = [
  { script: 'contended', why: 'decides when a worker yields: any moment is tried' },
  { script: 'inspect', why: 'a picture for people' },
];
