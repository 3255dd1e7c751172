/* Cures of the scripts that the histories of test/lua/traces-*.test.ts show, and those of cures-series and cures-cost. */

const TRACES_PERMITS = 'test/lua/traces-permits.test.ts';
const TRACES_ENTRIES = 'test/lua/traces-entries.test.ts';
const TRACES_SUBMIT = 'test/lua/traces-submit.test.ts';
const TRACES_DROPS = 'test/lua/traces-drops.test.ts';
const TRACES_TOKENS = 'test/lua/traces-tokens.test.ts';
const TRACES_CRASHES = 'test/lua/traces-crashes.test.ts';
const TRACES_OUTAGES = 'test/lua/traces-outages.test.ts';
const WHOLE = 'test/lua/cures-whole.test.ts';
const SERIES = 'test/lua/cures-series.test.ts';
const COST = 'test/lua/cures-cost.test.ts';

/** @type {import('./cures.mjs').LuaCure[]} */
export const luaHistories = [
  {
    cure: 'the counts of a queue in use do not expire',
    test: WHOLE,
    history: 'the counts of a queue expire when nothing is open in it, and not before',
  },
  {
    cure: 'what is there of an id is left alone',
    test: WHOLE,
    history: 'a request that is kept is not overwritten by one of its id',
  },
  {
    cure: 'an id that was opened long ago is left alone',
    test: WHOLE,
    history: 'a whole request is not written under an intent for which a create would be too late',
  },
  {
    cure: 'a submission that is sent twice finds its own request only',
    test: WHOLE,
    history: 'of two calls for the same request, only one hears that it made it',
  },
  {
    cure: 'a held request is submitted without a token',
    test: WHOLE,
    history: 'a delayed request has no token before its time',
  },
  {
    cure: 'a whole request is tended at its deadline',
    test: WHOLE,
    history: 'a request ends at its deadline, also while it is delayed for longer',
  },
  {
    cure: 'XACK-gated counting',
    test: TRACES_PERMITS,
    history: 'a success that is reported twice counts once',
  },
  {
    cure: 'owner check on failure',
    test: TRACES_ENTRIES,
    history: 'the failure of a worker that lost its lease does not touch what another runs by then',
  },
  {
    cure: 'due entry removed on success',
    test: TRACES_ENTRIES,
    history:
      'the success of a worker that lost its lease counts, and takes the entry out of the pool',
  },
  {
    cure: 'delayed work under the reserved consumer',
    test: TRACES_ENTRIES,
    history: 'a delayed retry keeps its delay when the worker that failed it leaves',
  },
  {
    cure: 'absolute totals in append',
    test: TRACES_SUBMIT,
    history: 'a chunk that is sent twice adds nothing twice',
  },
  {
    cure: 'tombstone for an intent without a request',
    test: TRACES_SUBMIT,
    history: 'a create that comes after its intent was given up is refused',
  },
  {
    cure: 'tombstone beyond the retention of the generation before',
    test: TRACES_SUBMIT,
    history: 'the tombstone of an intent outlasts the retention of the generation before',
  },
  {
    cure: 'a refused generation is refused to everybody',
    test: TRACES_SUBMIT,
    history: 'a generation that one submitter was refused cannot be created by another',
  },
  {
    cure: 'generation on finish',
    test: TRACES_DROPS,
    history: 'a late finish of one generation leaves the next one of the id alone',
  },
  {
    cure: 'op number in enter',
    test: TRACES_PERMITS,
    history: 'an enter that is sent twice grants once and counts its token once',
  },
  {
    cure: 'op number in enter, beyond the leave',
    test: TRACES_PERMITS,
    history: 'an enter that arrives after the worker left grants nothing',
  },
  {
    cure: 'op number in settle, permits',
    test: TRACES_PERMITS,
    history: 'a settle that arrives again late does not bring permits back',
  },
  {
    cure: 'op number in settle, leave',
    test: TRACES_PERMITS,
    history: 'a leave that arrives after the worker entered again takes no permit away',
  },
  {
    cure: 'op number in settle, failures',
    test: TRACES_PERMITS,
    history: 'a failure that arrives after its worker took the retry does not count for the retry',
  },
  {
    cure: 'tokens counted by the leave',
    test: TRACES_TOKENS,
    history: 'the token of a worker that leaves is counted before it can be popped',
  },
  {
    cure: 'top-up in leave',
    test: TRACES_TOKENS,
    history: 'an item appended while the last worker is about to leave gets a token when it leaves',
  },
  { cure: 'token epochs', test: TRACES_TOKENS, history: 'a token that was lost is minted again' },
  {
    cure: 'token epochs, of what a tend minted',
    test: TRACES_TOKENS,
    history: 'a token that a tend minted and somebody lost is missed within the audit period',
  },
  {
    cure: 'a time behind a claim is not overwritten',
    test: TRACES_TOKENS,
    history: 'a change that was announced during a tend is found by the next one',
  },
  {
    cure: 'a change that is announced is not put off',
    test: TRACES_TOKENS,
    history: 'a change that was announced is found in time, whatever was tended before it',
  },
  {
    cure: 'compare-and-set in write-back',
    test: TRACES_TOKENS,
    history: 'a tick that was frozen does not undo what a later one wrote',
  },
  {
    cure: 'reclaim from any consumer without a permit',
    test: TRACES_ENTRIES,
    history: 'an entry that a worker reads after it lost its lease is reclaimed',
  },
  {
    cure: 'consumer deleted only when empty',
    test: TRACES_ENTRIES,
    history: 'nothing is lost when the consumer of a dead worker is removed',
  },
  {
    cure: 'cancel of returned sub-requests',
    test: TRACES_ENTRIES,
    history: 'a sub-request returned to a request that is being cancelled is cancelled',
  },
  {
    cure: 'cancel of what a dead worker owned',
    test: TRACES_ENTRIES,
    history:
      'sub-requests of a dead worker are cancelled at once when their request is being cancelled',
  },
  {
    cure: 'a parked request does not stop workers that serve its task',
    test: TRACES_TOKENS,
    history: 'workers that serve a task continue when one that does not meets the request',
  },
  {
    cure: 'the last crash counts only in isolation',
    test: TRACES_CRASHES,
    history: 'only a sub-request that ran alone can fail by a crash',
  },
  {
    cure: 'the record of an isolated run is removed by the next take',
    test: TRACES_CRASHES,
    history: 'a sub-request that ran alone once is not blamed for a crash while it waits',
  },
  {
    cure: 'a crash counts for everything that the worker owned',
    test: TRACES_CRASHES,
    history:
      'a crash counts for every entry of the worker, also for those that the next tend takes back',
  },
  {
    cure: 'a late read is no crash',
    test: TRACES_CRASHES,
    history: 'an entry that a worker reads after it left counts no crash',
  },
  {
    cure: 'a whole lease of grace after Redis was away',
    test: TRACES_OUTAGES,
    history: 'after Redis was away, a worker has its whole lease to renew',
  },
  {
    cure: 'no third grace in a row',
    test: TRACES_OUTAGES,
    history: 'a Redis that comes and goes does not leave a dead worker its permits for ever',
  },
  {
    cure: 'the rest of a frugal fleet is no outage',
    test: TRACES_OUTAGES,
    history: 'work that begins in a fleet that rests survives an outage',
  },
  {
    cure: 'the rest of a frugal fleet is no outage',
    test: TRACES_OUTAGES,
    history: 'a fleet that rests takes over from a dead worker within a rest and a lease',
  },
  {
    cure: 'work that begins in a fleet that rests is told from it',
    test: TRACES_OUTAGES,
    history: 'work that begins in a fleet that rests survives an outage',
  },
  {
    cure: 'no third grace in a row',
    test: TRACES_OUTAGES,
    history: 'a step of the clock beside an outage leaves a worker its whole lease to renew',
  },
  {
    cure: 'a dropped generation is forgotten whatever is open',
    test: TRACES_DROPS,
    history:
      'a generation that is dropped is forgotten though the next one is open and comes to nothing',
  },
  {
    cure: 'a dropped request stays dropped',
    test: TRACES_DROPS,
    history: 'a drop that was cut in two can be taken up when the next intent came to nothing',
  },
  {
    cure: 'a tend older than an outage takes nothing back',
    test: TRACES_OUTAGES,
    history: 'a tend that was under way while Redis was away takes nothing from any worker',
  },
  {
    cure: 'a tend that seems late is postponed once',
    test: TRACES_OUTAGES,
    history: 'when every tend seems late, the second one takes back the work of a dead worker',
  },
  {
    cure: 'a generation is remembered until its create is too old',
    test: TRACES_SUBMIT,
    history: 'a create that comes when a short retention is over brings nothing into being',
  },
  {
    cure: 'generation on drop',
    test: TRACES_DROPS,
    history: 'a drop that arrives late leaves the next generation of the id alone',
  },
  {
    cure: 'a report counts what it has more than the one before',
    test: SERIES,
    history:
      'a report that arrives twice counts once, and the next one contains what a lost one had',
  },
  {
    cure: 'a report that arrives behind a later one counts nothing',
    test: SERIES,
    history: 'a report that arrives behind a later one counts nothing',
  },
  {
    cure: 'work is spread over the intervals in which it was done',
    test: SERIES,
    history: 'what was done between two reports is spread over the intervals between them',
  },
  {
    cure: 'the series of a queue is bounded',
    test: SERIES,
    history: 'the series is at most an hour long',
  },
  {
    cure: 'intervals that lie ahead are removed',
    test: SERIES,
    history: 'after the clock went back, no interval lies ahead, and one that has just begun stays',
  },
  {
    cure: 'the last report of a worker counts once',
    test: SERIES,
    history: 'the last report of a worker that leaves counts once',
  },
  {
    cure: 'of many workers some are asked',
    test: SERIES,
    history: 'of a fleet of thousands some workers are asked, and stand for the others',
  },
  {
    cure: 'a cost counts with its success',
    test: COST,
    history: 'the cost of a success that arrives again, beside another one, counts once',
  },
  {
    cure: 'a cost counts from the owner',
    test: COST,
    history: 'the cost of a failure and of a return counts from the worker that owns the entry',
  },
  {
    cure: 'a crash is an attempt',
    test: COST,
    history: 'what the worker had whose lease ended counts as attempts, once',
  },
];
