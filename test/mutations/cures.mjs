/*
 * Every cure that can be switched off, and what notices. `npm run test:mutants` goes through the list.
 *
 * Cures in Lua are switched off inside a test, which plays the same history with and without them:
 * `history` is its name in `test`. Of those in TypeScript the built code is changed, in a copy of
 * the packages: each text of `edits` occurs exactly once in `code`, and the test named has to fail.
 */

/**
 * @typedef {{ cure: string, test: string, history: string }} LuaCure
 * @typedef {{ from: string, to: string }} Edit
 * @typedef {{ cure: string, test: string, name: string, code: string, edits: Edit[] }} CodeCure
 */

const TRACES = 'test/lua/traces.test.ts';
const CURES = 'test/lua/cures.test.ts';
const CONTROL = 'test/lua/cures-control.test.ts';
const SUSPECTS = 'test/lua/cures-suspects.test.ts';
const LOST = 'test/lua/cures-lost.test.ts';
const REDRIVE = 'test/lua/cures-redrive.test.ts';
const LOST_WRITES = 'test/lua/cures-lost-writes.test.ts';
const CLOCK = 'test/lua/cures-clock.test.ts';
const BOUNDS = 'test/lua/cures-bounds.test.ts';
const DELAYS = 'test/lua/cures-delays.test.ts';
const LARGE = 'test/lua/cures-large.test.ts';

/** @type {LuaCure[]} */
export const luaCures = [
  { cure: 'XACK-gated counting', test: TRACES, history: 'D5' },
  {
    cure: 'XACK-gated counting, of a part of a batch',
    test: CURES,
    history: 'partly acknowledged',
  },
  { cure: 'XACK-gated counting, all together', test: CURES, history: 'together, counted' },
  {
    cure: 'no success together once one was contested',
    test: CURES,
    history: 'together, contested',
  },
  { cure: 'number of the hold', test: CURES, history: 'together, of one hold' },
  { cure: 'lost writes noticed by a settle', test: LOST_WRITES, history: 'lost read, settled' },
  { cure: 'lost writes noticed by an enter', test: LOST_WRITES, history: 'lost read, entered' },
  { cure: 'lost writes noticed by a take', test: LOST_WRITES, history: 'lost read, taken' },
  { cure: 'number of a take', test: LOST_WRITES, history: 'lost take' },
  {
    cure: 'lost writes noticed under permits alone',
    test: LOST_WRITES,
    history: 'a leave is no loss',
  },
  {
    cure: 'what others recorded is not recorded together',
    test: LOST_WRITES,
    history: 'together, recorded before',
  },
  {
    cure: 'what its own first run recorded is not recorded together',
    test: LOST_WRITES,
    history: 'together, by both runs',
  },
  {
    cure: 'what is unread again is not deleted',
    test: LOST_WRITES,
    history: 'unread again, pinned',
  },
  { cure: 'owner check on failure', test: TRACES, history: 'D3' },
  { cure: 'due entry removed on success', test: TRACES, history: 'D4' },
  { cure: 'delayed work under the reserved consumer', test: TRACES, history: 'D2' },
  { cure: 'absolute totals in append', test: TRACES, history: 'R12' },
  { cure: 'explicit ids', test: CURES, history: 'explicit ids' },
  { cure: 'tombstone for an intent without a request', test: TRACES, history: 'D6' },
  { cure: 'tombstone beyond the retention of the life before', test: TRACES, history: 'P6' },
  { cure: 'a refused generation is refused to everybody', test: TRACES, history: 'P7' },
  { cure: 'generation on finish', test: TRACES, history: 'D7' },
  { cure: 'op number in enter', test: TRACES, history: 'D8' },
  { cure: 'op number in enter, beyond the leave', test: TRACES, history: 'D8, late' },
  { cure: 'op number in settle, permits', test: TRACES, history: 'P1' },
  { cure: 'op number in settle, leave', test: TRACES, history: 'P2' },
  { cure: 'op number in settle, failures', test: TRACES, history: 'P3' },
  { cure: 'absolute keep in settle', test: CURES, history: 'absolute keep' },
  { cure: 'tokens counted by the leave', test: TRACES, history: 'D10' },
  { cure: 'top-up in leave', test: TRACES, history: 'D1' },
  { cure: 'top-up in append', test: CURES, history: 'top-up, append' },
  { cure: 'top-up in retry', test: CURES, history: 'top-up, retry' },
  { cure: 'top-up in retry, when it is due', test: CURES, history: 'top-up, due' },
  { cure: 'top-up in give-back', test: CURES, history: 'top-up, give-back' },
  { cure: 'top-up in reclaim', test: CURES, history: 'top-up, reclaim' },
  { cure: 'token epochs', test: TRACES, history: 'R13' },
  { cure: 'token epochs, of what a tend minted', test: TRACES, history: 'P8' },
  { cure: 'partial loss', test: CURES, history: 'partial loss' },
  { cure: 'a lane in due order', test: CURES, history: 'lane, in due order' },
  { cure: 'tokens lost from a lane', test: CURES, history: 'lane, lost tokens' },
  { cure: 'tokens lost before their lane was heard of', test: CURES, history: 'lane, unknown' },
  { cure: 'compare-and-set in write-back', test: TRACES, history: 'R14' },
  { cure: 'reclaim from any consumer without a permit', test: TRACES, history: 'D11' },
  { cure: 'consumer deleted only when empty', test: TRACES, history: 'D9' },
  { cure: 'cancel of what is given back', test: TRACES, history: 'P4' },
  { cure: 'cancel of what a dead worker held', test: TRACES, history: 'P5' },
  {
    cure: 'attempts counted apart from deliveries',
    test: CURES,
    history: 'attempts, not deliveries',
  },
  { cure: 'completion state before publish', test: CURES, history: 'state before publish' },
  { cure: 'producer lease', test: CURES, history: 'producer lease' },
  { cure: 'producer lease, renewed by calls', test: CURES, history: 'producer lease, renewed' },
  { cure: 'parked tasks do not stop who serves them', test: TRACES, history: 'P9' },
  { cure: 'the last crash counts only when alone', test: TRACES, history: 'P10' },
  {
    cure: 'a note of having run alone goes with the next take',
    test: TRACES,
    history: 'P10, again',
  },
  { cure: 'a crash counts for all that was held', test: TRACES, history: 'P11' },
  { cure: 'a late read is no crash', test: TRACES, history: 'P12' },
  { cure: 'a whole lease of grace after Redis was away', test: TRACES, history: 'P13' },
  { cure: 'no grace upon grace', test: TRACES, history: 'P14' },
  { cure: 'a dropped life is forgotten whatever is open', test: TRACES, history: 'P15' },
  { cure: 'what was dropped stays dropped', test: TRACES, history: 'P15, again' },
  { cure: 'a look older than an outage takes nothing', test: TRACES, history: 'P16' },
  { cure: 'a look that seems late is put off once', test: TRACES, history: 'P16, again' },
  { cure: 'a life is remembered until its create is too old', test: TRACES, history: 'P17' },
  { cure: 'generation on drop', test: TRACES, history: 'P18' },
  {
    cure: 'a paused request grants, mints and hands out nothing',
    test: CONTROL,
    history: 'paused',
  },
  { cure: 'top-up in resume', test: CONTROL, history: 'top-up, resume' },
  { cure: 'a resume does not end a hold', test: CONTROL, history: 'resumed, still held' },
  { cure: 'top-up in update', test: CONTROL, history: 'top-up, update' },
  { cure: 'permits above a lowered limit are taken back', test: CONTROL, history: 'lowered limit' },
  { cure: 'tokens of an old priority die', test: CONTROL, history: 'changed priority' },
  {
    cure: 'a change of the priority is made once',
    test: CONTROL,
    history: 'changed priority, once',
  },
  { cure: 'a hold is never made shorter', test: CONTROL, history: 'longest hold' },
  { cure: 'the end of a hold is on the agenda', test: CONTROL, history: 'hold, over' },
  { cure: 'the deadline is on the agenda', test: CONTROL, history: 'deadline' },
  { cure: 'the first reason of an early end stays', test: CONTROL, history: 'first reason' },
  { cure: 'too many failures end it in settle', test: CONTROL, history: 'too many failures' },
  { cure: 'too many failures end it in tend', test: CONTROL, history: 'too many crashes' },
  { cure: 'a share of failures waits for the seal', test: CONTROL, history: 'share of all' },
  {
    cure: 'no further attempt when there is to be none',
    test: CONTROL,
    history: 'no further attempt',
  },
  {
    cure: 'a checkpoint counts from its owner only',
    test: CONTROL,
    history: 'checkpoint, of its owner',
  },
  { cure: 'a checkpoint goes with its success', test: CONTROL, history: 'checkpoint, taken out' },
  { cure: 'records rise while a redrive moves', test: REDRIVE, history: 'records, rising' },
  {
    cure: 'records of crashes rise while a redrive moves',
    test: REDRIVE,
    history: 'records of crashes, rising',
  },
  { cure: 'a failure moves once', test: REDRIVE, history: 'moved once' },
  { cure: 'what was moved is not failed any more', test: REDRIVE, history: 'failed less' },
  { cure: 'a redrive belongs to its owner', test: REDRIVE, history: 'redriven by one' },
  { cure: 'only a complete request is redriven', test: REDRIVE, history: 'redrive after the end' },
  { cure: 'a refused redrive is refused for good', test: REDRIVE, history: 'redrive refused' },
  {
    cure: 'a redriven request takes no new items',
    test: REDRIVE,
    history: 'redrive without appends',
  },
  { cure: 'permits end with their life', test: REDRIVE, history: 'permits of the life before' },
  { cure: 'a redriven request is kept', test: REDRIVE, history: 'redrive, kept' },
  { cure: 'a lost redrive is sealed', test: REDRIVE, history: 'redrive, lost producer' },
  { cure: 'what an earlier life cancelled stays so', test: REDRIVE, history: 'cancelled before' },
  { cure: 'a lease is not believed beyond its length', test: CLOCK, history: 'back, a lease' },
  {
    cure: 'the agenda is shifted when the clock went back',
    test: CLOCK,
    history: 'back, an agenda',
  },
  {
    cure: 'the end of an outage is not believed when it lies ahead',
    test: CLOCK,
    history: 'forward and back',
  },
  { cure: 'an outage is told by one clock', test: CLOCK, history: 'another clock' },
  { cure: 'a late look of a clock that went back', test: CLOCK, history: 'late looks, back' },
  { cure: 'grace for producers after an outage', test: CLOCK, history: 'producer, an outage' },
  { cure: 'grace for producers in a late look', test: CLOCK, history: 'producer, a late look' },
  {
    cure: 'grace for a lease that is shorter than a gap between two ticks',
    test: CLOCK,
    history: 'a short lease, a jump',
  },
  { cure: 'that grace is given once', test: CLOCK, history: 'a short lease, slow looks' },
  {
    cure: 'a producer lease is not believed beyond its length',
    test: CLOCK,
    history: 'back, a producer',
  },
  { cure: 'a delay is not believed beyond its length', test: CLOCK, history: 'back, a delay' },
  { cure: 'an id that was opened tells the clock', test: CLOCK, history: 'back, an opened id' },
  { cure: 'a delay of nothing has its length too', test: CLOCK, history: 'back, no delay' },
  { cure: 'a create too old is refused for good', test: CLOCK, history: 'back, a refused create' },
  { cure: 'a hold is not believed beyond its length', test: CLOCK, history: 'back, a hold' },
  {
    cure: 'a deadline is not believed beyond its length',
    test: CLOCK,
    history: 'back, a deadline',
  },
  {
    cure: 'the delay of a retry is not believed beyond the longest',
    test: CLOCK,
    history: 'back, a retry',
  },
  { cure: 'a pop that lies ahead is of now', test: CLOCK, history: 'back, a lost token' },
  { cure: 'a sign of life that lies ahead is of now', test: CLOCK, history: 'back, signs of life' },
  {
    cure: 'the pause of a queue is not believed beyond its length',
    test: CLOCK,
    history: 'back, a pause',
  },
  { cure: 'a pause that is asked for again', test: CLOCK, history: 'back, a longer pause' },
  { cure: 'generations stay near the clock', test: CLOCK, history: 'lives and the clock' },
  { cure: 'the end of a life makes the next one greater', test: CLOCK, history: 'the next life' },
  {
    cure: 'an open life that is over is replaced',
    test: CLOCK,
    history: 'an open life that is over',
  },
  {
    cure: 'a tick tells a worker what is parked for it, and no more',
    test: BOUNDS,
    history: 'parked, by task',
  },
  {
    cure: 'parked requests are told in turns',
    test: BOUNDS,
    history: 'parked, in turns',
  },
  {
    cure: 'what an earlier version parked is found',
    test: BOUNDS,
    history: 'parked, by an earlier version',
  },
  {
    cure: 'the index of parked requests follows the hash',
    test: BOUNDS,
    history: 'parked, no longer',
  },
  {
    cure: 'one tick passes so many in all',
    test: BOUNDS,
    history: 'passed, some at a time',
  },
  {
    cure: 'a take is bounded by bytes',
    test: BOUNDS,
    history: 'take, by bytes',
  },
  {
    cure: 'op number in take',
    test: BOUNDS,
    history: 'take, sent twice',
  },
  {
    cure: 'a settle reads by bytes',
    test: BOUNDS,
    history: 'settle, reads by bytes',
  },
  {
    cure: 'an enter reads by bytes',
    test: BOUNDS,
    history: 'enter, reads by bytes',
  },
  {
    cure: 'a tend takes back so many in all',
    test: BOUNDS,
    history: 'tend, some at a time',
  },
  {
    cure: 'a tend finds so many leases ended',
    test: BOUNDS,
    history: 'leases, some at a time',
  },
  {
    cure: 'what keeps much is unlinked before it expires',
    test: BOUNDS,
    history: 'spent, unlinked',
  },
  {
    cure: 'an unlink belongs to its life',
    test: BOUNDS,
    history: 'spent, redriven',
  },
  {
    cure: 'whoever sees an end says what is to be unlinked',
    test: BOUNDS,
    history: 'spent, told by others',
  },
  { cure: 'a tend looks at a page of thousands of workers', test: LARGE, history: 'a crowd, dead' },
  { cure: 'the first lease of all pages counts', test: LARGE, history: 'a crowd, alive' },
  { cure: 'a crash is one at any page', test: LARGE, history: 'a crowd, and one with much' },
  {
    cure: 'who is named by no field is found',
    test: LARGE,
    history: 'a crowd, and one that read late',
  },
  { cure: 'the place of a page is forgotten', test: LARGE, history: 'a crowd, fewer' },
  { cure: 'a redrive clears pages', test: LARGE, history: 'a crowd, redriven' },
  { cure: 'a large state is unlinked before it expires', test: LARGE, history: 'a crowd, spent' },
  {
    cure: 'a long lane is not gone through, near its front',
    test: LARGE,
    history: 'a long lane, near its front',
  },
  {
    cure: 'a long lane is in order, near its end',
    test: LARGE,
    history: 'a long lane, near its end',
  },
  {
    cure: 'a long lane is not gone through, far from both ends',
    test: LARGE,
    history: 'a long lane, far from both',
  },
  { cure: 'a read of results is bounded by bytes', test: BOUNDS, history: 'results, by bytes' },
  {
    cure: 'a take of a timed set is bounded by bytes',
    test: BOUNDS,
    history: 'timed take, by bytes',
  },
  {
    cure: 'long keys count in a take of a timed set',
    test: BOUNDS,
    history: 'timed take, long keys',
  },
  { cure: 'each key counts in a take of a timed set', test: BOUNDS, history: 'timed take, many' },
  {
    cure: 'a read of what was discarded is bounded by bytes',
    test: BOUNDS,
    history: 'discarded, by bytes',
  },
  { cure: 'a delay is believed for its length', test: DELAYS, history: 'a delay, the clock back' },
  { cure: 'no delay is a length', test: DELAYS, history: 'no delay, the clock back' },
  {
    cure: 'the delay of a failure is believed for its length',
    test: DELAYS,
    history: 'a failure, the clock back',
  },
  {
    cure: 'who gives a length notes the clock',
    test: DELAYS,
    history: 'a length that nobody noted',
  },
  {
    cure: 'a time of the user is no length',
    test: DELAYS,
    history: 'a time of the user, the clock back',
  },
  {
    cure: 'a delay is not shortened by a clock that was ahead meanwhile',
    test: DELAYS,
    history: 'a delay from before, the clock back',
  },
  {
    cure: 'a move beside the lease is believed for its length',
    test: DELAYS,
    history: 'a move beside the lease, the clock back',
  },
  {
    cure: 'what was due is due when it is given back',
    test: DELAYS,
    history: 'given back, the clock back',
  },
  {
    cure: 'a look through what lies ahead goes on page by page',
    test: DELAYS,
    history: 'many delays, the clock back',
  },
  {
    cure: 'nobody fails by a crash in company',
    test: SUSPECTS,
    history: 'suspects, in company',
  },
  {
    cure: 'company of another request is company',
    test: SUSPECTS,
    history: 'suspects, company of others',
  },
  {
    cure: 'the company of a crash is remembered',
    test: SUSPECTS,
    history: 'suspects, smaller company',
  },
  {
    cure: 'a dead process holds no lease',
    test: SUSPECTS,
    history: 'cause, dead',
  },
  {
    cure: 'a cause counts until the next renewal',
    test: SUSPECTS,
    history: 'cause, of before',
  },
  {
    cure: 'a living request takes the place of the intent that it refused',
    test: LOST,
    history: 'in place of an intent',
  },
  {
    cure: 'a swap says that nothing was returned',
    test: LOST,
    history: 'closed, swap',
  },
];

/** Tests that switch off a flag: one for each script, all of which have to pass. */
export const flagCure = {
  cure: 'allow-oom on draining scripts',
  test: 'test/lua/memory.test.ts',
  names: /^needs allow-oom in /,
};

const REQUEST_SESSION = 'packages/worker/dist/request/request-session.js';
const HOSTILE = 'test/flow/hostile-throws.test.ts';
const SUBMISSIONS = 'test/crash/lost-submissions.test.ts';
const TYPED_TASKS = 'test/flow/typed-tasks.test.ts';
const SIGNALS = 'test/flow/signals.test.ts';

/** @type {CodeCure[]} */
export const codeCures = [
  {
    cure: 'results are read again in the order of completion',
    test: 'test/flow/results-lost-writes.test.ts',
    name: 'come once each in the order of completion',
    code: 'packages/notifier/dist/completion-order.js',
    edits: [{ from: 'if (missing === 0 && !seen.twice)', to: 'if (true)' }],
  },
  {
    cure: 'results are given once in the order of completion',
    test: 'test/flow/results-lost-writes.test.ts',
    name: 'come once each in the order of completion',
    code: 'packages/notifier/dist/completion-order.js',
    edits: [
      {
        from: '!seen.add(item, position) || n < done',
        to: '(seen.add(item, position), n < done)',
      },
    ],
  },
  {
    cure: 'results are read again in the order of the items',
    test: 'test/flow/results-lost-writes.test.ts',
    name: 'come once each in the order of the items',
    code: 'packages/notifier/dist/index-order.js',
    edits: [{ from: 'if (missing === 0 && !seen.twice && !buffer.lost)', to: 'if (true)' }],
  },
  {
    cure: 'a result that left its place is waited for',
    test: 'test/flow/results-lost-writes.test.ts',
    name: 'come once each when only their places were kept',
    code: 'packages/notifier/dist/reorder-buffer.js',
    edits: [{ from: 'this.#positions.set(next, 0);', to: 'this.#positions.set(next, PASS_OVER);' }],
  },
  {
    cure: 'a cursor that went with its record is refused',
    test: 'test/flow/results-lost-writes.test.ts',
    name: 'are not read on from a cursor that went with them',
    code: 'packages/notifier/dist/result-reader.js',
    edits: [
      {
        from: "if (next === from && from !== '-' && page[0]?.position !== from)",
        to: 'if (false)',
      },
    ],
  },
  {
    cure: 'results that are not there are missed',
    test: 'test/flow/results-lost-writes.test.ts',
    name: 'are missed by name when they are not there in the end',
    code: 'packages/notifier/dist/completion-order.js',
    edits: [{ from: 'if (pass === 2 && missing > 0)', to: 'if (false)' }],
  },
  {
    cure: 'what runs here is not started again',
    test: 'test/crash/lost-writes.test.ts',
    name: 'brings what a worker runs already, which is not started again',
    code: 'packages/worker/dist/request/request-session.js',
    edits: [{ from: 'if (this.#running.has(entry.entry))', to: 'if (false)' }],
  },
  {
    cure: 'a read that large payloads cut short is not dry',
    test: 'test/flow/settle-reads.test.ts',
    name: 'that is cut short by large payloads does not make its worker leave',
    code: 'packages/worker/dist/request/request-session.js',
    edits: [{ from: '!unsure && !settled.cut', to: '!unsure' }],
  },
  {
    cure: 'what a repeated take brought is compared',
    test: 'test/flow/settle-reads.test.ts',
    name: 'is compared when its reply got lost, and what it took is run',
    code: 'packages/worker/dist/request/request-session.js',
    edits: [{ from: 'if (taken.left < 0)', to: 'if (false)' }],
  },
  {
    cure: 'a worker believes the last answer on a pause',
    test: 'test/flow/clock-steps.test.ts',
    name: 'neither lets a paused queue run, nor keeps one that was resumed',
    code: 'packages/worker/dist/fetch/queue-pause.js',
    edits: [{ from: 'this.#set(pausedMs >= 0);', to: 'if (pausedMs >= 0) this.#set(true);' }],
  },
  {
    cure: 'agendas of many queues rest',
    test: 'test/lua/agenda-pace.test.ts',
    name: 'rests for longer where many agendas are kept, but not beyond what is due',
    code: 'packages/protocol/dist/upkeep/agenda.js',
    edits: [{ from: 'Math.max(LONGEST_MS, this.#options.restMs?.() ?? 0)', to: 'LONGEST_MS' }],
  },
  {
    cure: 'the doctor sees times of a queue that lie ahead',
    test: 'test/flow/doctor-clocks.test.ts',
    name: 'are told of a queue and of a request, and not once they have healed',
    code: 'packages/piecework/dist/operate/doctor/future.js',
    edits: [{ from: 'if (what.length === 0)', to: 'if (true)' }],
  },
  {
    cure: 'the doctor sees leases that lie ahead',
    test: 'test/flow/doctor-clocks.test.ts',
    name: 'are told of a queue and of a request, and not once they have healed',
    code: 'packages/piecework/dist/operate/doctor/future.js',
    edits: [{ from: 'if (leases.length > 0)', to: 'if (false)' }],
  },
  {
    cure: 'the doctor sees what expires in the midst of the work',
    test: 'test/flow/doctor-servers.test.ts',
    name: 'of what ended and keeps much, where what expires is freed at once',
    code: 'packages/piecework/dist/operate/doctor/expiry.js',
    edits: [{ from: 'if (spent === 0)', to: 'if (true)' }],
  },
  {
    cure: 'intent before create',
    test: 'test/flow/crossings.test.ts',
    name: 'what exists of the request is on the agenda',
    code: 'packages/producer/dist/bring-up.js',
    edits: [
      {
        from: 'const generation = await patience.call(() => queue.intent(id, above));',
        to: 'const generation = Date.now();',
      },
      {
        from: "if (created.verdict === 'created')",
        to: `if (created.verdict === 'created')
                await queue.reopen(id, generation);
            if (created.verdict === 'created')`,
      },
    ],
  },
  {
    cure: 'what is due together is written back in due order',
    test: 'test/lua/expedite.test.ts',
    name: 'is pushed in due order by who finds several due',
    code: 'packages/protocol/dist/upkeep/agenda.js',
    edits: [
      {
        from: 'expedited.sort((a, b) => a.due - b.due || a.claim.generation - b.claim.generation);',
        to: ';',
      },
    ],
  },
  {
    cure: 'leave before push',
    test: 'test/flow/crossings.test.ts',
    name: 'is counted before it can be popped, also when its worker leaves',
    code: REQUEST_SESSION,
    edits: [
      {
        from: 'const numbers = { op, since, leaseMs, keep, running, read, answered: this.#answered };',
        to: `const numbers = { op, since, leaseMs, keep, running, read, answered: this.#answered };
        const { generation } = this;
        const leaving = { id: this.id, generation, mint: this.#permits - keep, epoch: 1, priority: this.#place.priority };
        if (leaving.mint > 0) await this.#core.queue.push(leaving);`,
      },
      {
        from: 'const minted = this.#minted(settled.mint, settled.epoch);',
        to: 'const minted = this.#minted(leaving.mint > 0 ? 0 : settled.mint, settled.epoch);',
      },
    ],
  },
  {
    cure: 'give-back of unstarted reads',
    test: 'test/flow/lease.test.ts',
    name: 'gives back at once what it read while it was told to leave',
    code: REQUEST_SESSION,
    edits: [{ from: "this.#outcomes.push({ entry: entry.entry, kind: 'b' });", to: ';' }],
  },
  {
    cure: 'give-back of what a lost reply brought',
    test: 'test/flow/worker.test.ts',
    name: 'finds what a lost reply took along, though it stays engaged',
    code: 'packages/worker/dist/lease/heartbeat.js',
    edits: [{ from: 'session.compare(this.#leaseMs / 3);', to: '' }],
  },
  {
    cure: 're-read after reconnect',
    test: 'test/flow/completion.test.ts',
    name: 'completed while its connection is cut',
    code: 'packages/notifier/dist/waiters.js',
    edits: [
      {
        from: 'onMaybeMissed: (channels) => this.#ask(channels),',
        to: 'onMaybeMissed: (channels) => this.#ask(channels.filter((it) => !this.#watches.get(it)?.seen)),',
      },
    ],
  },
  {
    cure: 'state re-read by the waiter, once it is subscribed',
    test: 'test/flow/completion.test.ts',
    name: 'is told to who awaits before, while and after it happens',
    code: 'packages/protocol/dist/redis/subscriber.js',
    edits: [
      {
        from: `this.#backoff.reset();
            this.#events.onMaybeMissed(mine);`,
        to: 'this.#backoff.reset();',
      },
    ],
  },
  {
    cure: 'state re-read by the waiter, from time to time',
    test: 'test/flow/completion.test.ts',
    name: 'a notice that never comes',
    code: 'packages/notifier/dist/waiters.js',
    edits: [{ from: 'this.#looks.ask(this.#pace.due(now));', to: '' }],
  },
  {
    cure: 'self-fencing',
    test: 'test/flow/lease.test.ts',
    name: 'aborts its handlers by its own clock when nothing renews the lease',
    code: REQUEST_SESSION,
    edits: [
      {
        from: 'if (now >= this.#until - leaseMs / 10)',
        to: 'if (false)',
      },
    ],
  },
  {
    cure: 'a suspect runs alone',
    test: 'test/flow/alone.test.ts',
    name: 'runs when nothing else runs in its process, of any request, and nothing starts beside it',
    code: 'packages/worker/dist/shared/isolation.js',
    edits: [
      { from: 'if (!this.clearing || this.#handlers() > 0)', to: 'if (!this.clearing)' },
      { from: 'if (!this.#parties.has(one) || !one.quiet)', to: 'if (false)' },
    ],
  },
  {
    cure: 'producer lease, renewed by time',
    test: 'test/flow/open.test.ts',
    name: 'keeps its lease while it is open, and no longer',
    code: 'packages/producer/dist/open-request.js',
    edits: [
      { from: 'this.#renewal = setInterval(renew,', to: 'this.#renewal = setInterval(() => {},' },
    ],
  },
  {
    cure: 'watchdog of the blocking connection',
    test: 'test/flow/dead-connection.test.ts',
    name: 'a worker whose blocking connection died without a word builds a new one',
    code: 'packages/worker/dist/fetch/token-fetcher.js',
    edits: [{ from: 'BLOCK_SECONDS * 1_000 + WATCHDOG_MS', to: '2_000_000_000' }],
  },
  {
    cure: 'what was thrown is looked at where nothing throws',
    test: HOSTILE,
    name: 'may throw and reject with anything',
    code: 'packages/protocol/dist/contract/thrown.js',
    edits: [
      { from: 'attempt(() => thrown instanceof kind) ?? false', to: 'thrown instanceof kind' },
    ],
  },
  {
    cure: 'an answer that cannot be awaited fails its sub-request',
    test: HOSTILE,
    name: 'may answer anything',
    code: 'packages/worker/dist/handler/attempt.js',
    edits: [{ from: 'Promise.reject(error).catch(threw);', to: 'throw error;' }],
  },
  {
    cure: 'what a listener threw is logged as an error of ours',
    test: HOSTILE,
    name: 'a listener of the worker may throw and reject with anything',
    code: 'packages/worker/dist/report/events.js',
    edits: [{ from: 'err: errorOf(error), event: name', to: 'err: error, event: name' }],
  },
  {
    cure: 'a listener of a notifier ends nothing',
    test: HOSTILE,
    name: 'a listener of a notifier may throw anything: who waits is told',
    code: 'packages/notifier/dist/waiters.js',
    edits: [{ from: 'const onError = telling(listener);', to: 'const onError = listener;' }],
  },
  {
    cure: 'nothing is left on a signal',
    test: SIGNALS,
    name: 'submissions of streams',
    code: 'packages/protocol/dist/common/abort.js',
    edits: [{ from: 'if (acts.delete(own) && acts.size === 0)', to: 'if (acts.size === -1)' }],
  },
  {
    cure: 'long timers are set in parts',
    test: SIGNALS,
    name: 'is waited for in parts',
    code: 'packages/protocol/dist/common/waiting.js',
    edits: [{ from: 'if (ms <= LONGEST_TIMER_MS)', to: 'if (ms > 0)' }],
  },
  {
    cure: 'a line that is too long is refused',
    test: 'test/flow/lines.test.ts',
    name: 'is named by its number',
    code: 'packages/producer/dist/line-splitter.js',
    edits: [{ from: 'if (this.#begunBytes <= maxBytes)', to: 'if (this.#begunBytes >= 0)' }],
  },
  {
    cure: 'of several calls that submit the same, one made the request',
    test: TYPED_TASKS,
    name: 'for an id, also when several ask at the same time',
    code: 'packages/producer/dist/bring-up.js',
    edits: [{ from: '(await patience.call(createdBy)) === call', to: 'true' }],
  },
  {
    cure: 'what is appended stays behind what is still being checked',
    test: TYPED_TASKS,
    name: 'keeps the order where checks take their time, and seals behind them',
    code: 'packages/producer/dist/open-request.js',
    edits: [{ from: 'Promise.all([earlier, ...checks])', to: 'Promise.all(checks)' }],
  },
  {
    cure: 'a request without a limit keeps the digest that it had with the default',
    test: 'test/flow/no-limit.test.ts',
    name: 'what a release with a default limit of 10 submitted is recognised',
    code: 'packages/producer/dist/digest.js',
    edits: [{ from: 'limit ?? 10', to: 'limit ?? null' }],
  },
  {
    cure: 'replies of another shape are refused',
    test: 'test/flow/reply-shapes.test.ts',
    name: 'by all who are given a client of replyMapping resp3',
    code: 'packages/protocol/dist/redis/open-client.js',
    edits: [{ from: "refuses: 'resp3',", to: "refuses: 'none'," }],
  },
  {
    cure: 'one look at the own clock before a handler starts',
    test: 'test/crash/thawed-worker.test.ts',
    name: "a worker that froze with the reply to 'settle' in hand starts nothing from it after its lease",
    code: REQUEST_SESSION,
    edits: [
      {
        from: 'this.fence();\n        // Claimed first',
        to: '// Claimed first',
      },
      {
        from: 'const now = this.fence();',
        to: 'const now = performance.now();',
      },
    ],
  },
  {
    cure: 'one look at the own clock before a suspect starts',
    test: 'test/crash/thawed-worker.test.ts',
    name: "a worker that froze with the reply to 'note' in hand starts nothing from it after its lease",
    code: REQUEST_SESSION,
    edits: [
      {
        from: 'this.fence();\n            if (this.#suspects !== suspects)',
        to: 'if (this.#suspects !== suspects)',
      },
    ],
  },
  {
    cure: 'suspects go back where what runs beside them does not end',
    test: 'test/flow/alone.test.ts',
    name: 'goes to another process when what runs beside it does not end',
    code: 'packages/worker/dist/shared/isolation.js',
    edits: [{ from: 'giveBack(waitedMs);', to: ';' }],
  },
  {
    cure: 'a take of fewer than were asked for goes on',
    test: 'test/flow/timed-large.test.ts',
    name: 'are taken in several calls, as many as were asked for',
    code: 'packages/queues/dist/timed/scheduler.js',
    edits: [{ from: 'const cut = took.taken.length > 0', to: 'const cut = false' }],
  },
  {
    cure: 'long keys are remembered by a digest',
    test: 'test/flow/timed-large.test.ts',
    name: 'are remembered by a short name: a Map finds long texts of one length one by one',
    code: 'packages/queues/dist/timed/locks.js',
    edits: [{ from: 'key.length > LONG', to: 'false' }],
  },
  {
    cure: 'a payload that is read to settle its task counts',
    test: 'test/flow/timed-large.test.ts',
    name: 'tasks with large payloads that failed are put back in several calls',
    code: 'packages/queues/dist/timed/timed-set.js',
    edits: [{ from: 'String(value).length + payloadLength', to: 'String(value).length' }],
  },
  {
    cure: 'one look at the own clock before a task is handed out',
    test: 'test/flow/late-replies.test.ts',
    name: 'a task whose take is answered after its lease is not handed out under that lease',
    code: 'packages/queues/dist/timed/consumer.js',
    edits: [
      {
        from: 'this.#leases.keeps(ready)',
        to: '!ready.isOver',
      },
    ],
  },
  {
    cure: 'a sign of life is asked for while nothing else asks',
    test: 'test/flow/ready.test.ts',
    name: 'a worker whose slots are all taken is not ready once Redis answers nothing, and ready when it does',
    code: 'packages/worker/dist/fetch/shard.js',
    edits: [
      {
        from: 'this.pulse.start();',
        to: '',
      },
    ],
  },
  {
    cure: 'state re-read by the waiter, often where few wait',
    test: 'test/flow/lost-notices.test.ts',
    name: 'by all that wait where every notice is swallowed',
    code: 'packages/notifier/dist/pace.js',
    edits: [
      {
        from: 'const SHORTEST_PART = 10;',
        to: 'const SHORTEST_PART = 1;',
      },
    ],
  },
  {
    cure: 'a request whose results need room waits for it',
    test: 'test/flow/nearly-full.test.ts',
    name: 'results that need more room than there is are waited with, and none is lost',
    code: 'packages/worker/dist/report/memory.js',
    edits: [
      {
        from: 'if (tight === this.#tight)',
        to: 'if (tight || !tight)',
      },
    ],
  },
  {
    cure: 'nothing is read while more waits than one settle takes',
    test: 'test/flow/nearly-full.test.ts',
    name: 'results that need more room than there is are waited with, and none is lost',
    code: REQUEST_SESSION,
    edits: [
      {
        from: ' || this.#outcomes.isMuch',
        to: '',
      },
    ],
  },
  {
    cure: 'what frees memory is read on a server that is nearly full',
    test: 'test/flow/nearly-full.test.ts',
    name: 'what frees memory goes on where a request that needs room waits, which goes on when there is some',
    code: 'packages/worker/dist/shared/growth.js',
    edits: [
      {
        from: 'return (this.keeps ? this.#result : 0) + this.#error > this.#payload;',
        to: 'return true;',
      },
    ],
  },
  {
    cure: 'a crash makes the company smaller',
    test: 'test/flow/suspects.test.ts',
    name: 'run in a quarter of the company in which they crashed',
    code: 'packages/worker/dist/shared/isolation.js',
    edits: [
      {
        from: 'company || this.#slots.capacity',
        to: 'this.#slots.capacity',
      },
    ],
  },
  {
    cure: 'suspects of several requests make one company',
    test: 'test/flow/suspects.test.ts',
    name: 'of several requests run together, and no more of them than of one',
    code: 'packages/worker/dist/shared/isolation.js',
    edits: [
      {
        from: 'if (this.#running)',
        to: 'if (this.active)',
      },
    ],
  },
  {
    cure: 'the end of a process is noted at once',
    test: 'test/crash/suspects.test.ts',
    name: 'fails with what its parent saw, and nobody waits for its lease: process.exit(7)',
    code: 'packages/cli/dist/fleet.js',
    edits: [
      {
        from: 'return await noteEnd(redis, worker, cause, true);',
        to: 'return [];',
      },
    ],
  },
  {
    cure: 'a worker process that ended is started again',
    test: 'test/flow/cli-fleet.test.ts',
    name: 'goes on, and keeps all results but the guilty one: process.exit',
    code: 'packages/cli/dist/fleet.js',
    edits: [
      {
        from: 'if (delayMs === undefined || (this.#starting && !worker)) {',
        to: 'if (true) {',
      },
    ],
  },
  {
    cure: 'programs end with their worker',
    test: 'test/flow/cli-fleet.test.ts',
    name: 'end when their worker is killed',
    code: 'packages/cli/dist/exec-program.js',
    edits: [
      {
        from: 'guardGroup(child.pid);',
        to: ';',
      },
    ],
  },
  {
    cure: 'a handler has a moment after its abort',
    test: 'test/flow/cli-fleet.test.ts',
    name: 'a handler may still log after its abort, within the drain',
    code: 'packages/worker/dist/worker.js',
    edits: [
      {
        from: 'while (aborts && this.running > 0 && performance.now() < end)',
        to: 'while (false)',
      },
    ],
  },
  {
    cure: 'a blocked event loop is named',
    test: 'test/crash/suspects.test.ts',
    name: 'that blocks its event loop fails with that',
    code: 'packages/worker/dist/lease/renewal-thread.js',
    edits: [
      {
        from: 'giveUp(one, silentMs);',
        to: '',
      },
    ],
  },
  {
    cure: 'a failure weighs its payload',
    test: 'test/flow/client-bounds.test.ts',
    name: 'is bounded by the payloads that are kept with failures',
    code: 'packages/worker/dist/request/outcomes.js',
    edits: [
      {
        from: 'bytes += outcome.payload ?? 0;',
        to: '',
      },
    ],
  },
  {
    cure: 'key names are forgotten',
    test: 'test/flow/client-bounds.test.ts',
    name: 'the names of a queue’s keys are kept for the queues used last, not for each that ever was',
    code: 'packages/protocol/dist/contract/keys.js',
    edits: [
      {
        from: 'if (queues.size > QUEUES_KEPT)',
        to: 'if (false)',
      },
    ],
  },
  {
    cure: 'the search for what is parked goes on',
    test: 'test/flow/client-bounds.test.ts',
    name: 'goes on where the last page ended, by turns among its tasks',
    code: 'packages/worker/dist/fetch/parked-search.js',
    edits: [
      {
        from: 'this.#after = after;',
        to: '',
      },
    ],
  },
  {
    cure: 'what lives is opened again where the queue side has lost it',
    test: 'test/flow/lost.test.ts',
    name: 'who works at a request that the queue has lost opens it again',
    code: 'packages/protocol/dist/calls/tell-open.js',
    edits: [
      {
        from: 'if ((await patiently(() => livingIn(queue, request))) !== generation)',
        to: 'if (true)',
      },
    ],
  },
  {
    cure: 'what is sealed is asked of both sides again behind a new connection',
    test: SUBMISSIONS,
    name: 'whichever round trip comes then, what is acknowledged will run: one of several chunks',
    code: 'packages/producer/dist/seal-in.js',
    edits: [
      {
        from: 'if (open && connection.epoch === epoch)',
        to: 'if (open)',
      },
    ],
  },
  {
    cure: 'an end that the server lost takes nothing off the queue side',
    test: 'test/flow/lost.test.ts',
    name: 'what lives again behind a new connection stays open on the queue side',
    code: 'packages/protocol/dist/calls/tell-open.js',
    edits: [
      {
        from: 'if ((await patiently(() => livingIn(queue, request))) === generation) {',
        to: 'if (false) {',
      },
    ],
  },
  {
    cure: 'what follows from an answer goes over its connection',
    test: 'test/flow/lost.test.ts',
    name: 'what follows from an answer goes over the connection of that answer, and over no later one',
    code: 'packages/protocol/dist/redis/send-once.js',
    edits: [
      {
        from: 'if (this.over) {',
        to: 'if (false) {',
      },
    ],
  },
  {
    cure: 'lost is not told as completed',
    test: 'test/flow/lost.test.ts',
    name: 'a request that is not there any more, and that nobody knows to have ended, is told to be lost',
    code: 'packages/notifier/dist/look.js',
    edits: [
      {
        from: 'if (open === undefined && endedAt !== undefined)',
        to: 'if (seen > 0)',
      },
    ],
  },
  {
    cure: 'a server that was fit is looked at again',
    test: 'test/flow/lost.test.ts',
    name: 'a policy that evicts is noticed by a producer that lives, and so is its end',
    code: 'packages/protocol/dist/redis/connection.js',
    edits: [
      {
        from: 'this.#lookAgain();',
        to: 'void 0;',
      },
    ],
  },
  {
    cure: 'a flood of lines is counted',
    test: 'test/flow/worker-log.test.ts',
    name: 'has five of a kind in a flood, and how many more there were',
    code: 'packages/worker/dist/report/flood.js',
    edits: [{ from: 'if (known.count <= IN_FULL)', to: 'if (true)' }],
  },
  {
    cure: 'a slow handler is logged once',
    test: 'test/flow/worker-log.test.ts',
    name: 'has one warning for a handler that runs far longer than usual',
    code: REQUEST_SESSION,
    edits: [{ from: 'if (!running.saidSlow)', to: 'if (true)' }],
  },
  {
    cure: 'what is usual says what runs for long',
    test: 'test/flow/running.test.ts',
    name: 'warns of a handler that runs ten times as long as usual, a minute at least',
    code: 'packages/piecework/dist/operate/doctor/running.js',
    edits: [{ from: 'slowAfterMs(medians.get(id))', to: 'slowAfterMs(undefined)' }],
  },
  {
    cure: 'what nobody has does not run',
    test: 'test/flow/running.test.ts',
    name: 'is not what waits for its next attempt',
    code: 'packages/protocol/dist/calls/running-commands.js',
    edits: [{ from: 'name !== NOBODY && ', to: '' }],
  },
  {
    cure: 'workers log what failed as its workers ended too often',
    test: 'test/flow/worker-log.test.ts',
    name: 'has a warning when sub-requests failed as their workers ended too often',
    code: 'packages/protocol/dist/upkeep/agenda.js',
    edits: [{ from: "if (tended.verdict !== 'gone' && tended.crashed)", to: 'if (false)' }],
  },
  {
    cure: 'who redrove a request knows the new life',
    test: 'test/flow/redrive.test.ts',
    name: 'that the server lost is told to who waits for it, and is asked for again',
    code: 'packages/piecework/dist/api/request-handle.js',
    edits: [{ from: 'this.#generation = redriven.generation;', to: '' }],
  },
  {
    cure: 'what runs may end after the first Ctrl-C',
    test: 'test/flow/cli-fleet.test.ts',
    name: 'that run may end after the first Ctrl-C, each in its time',
    code: 'packages/cli/dist/run.js',
    edits: [
      {
        from: 'await workers?.stop();\n    // At once',
        to: '// At once',
      },
    ],
  },
  {
    cure: 'a handler that does not stop is seen',
    test: 'test/flow/worker-log.test.ts',
    name: 'has a warning for handlers that go on although they were told to stop, as probes and the doctor do',
    code: REQUEST_SESSION,
    edits: [
      {
        from: 'this.#core.leftovers.note(running.ended, () => this.#log.goesOn(running));',
        to: '',
      },
    ],
  },
  {
    cure: 'one run of a name at a time',
    test: 'test/flow/cli-resume.test.ts',
    name: 'is not run a second time, and does not notice',
    code: 'packages/cli/dist/run-lock.js',
    edits: [{ from: 'if (!other)', to: 'if (true)' }],
  },
  {
    cure: 'what ended workers of the last run hold is freed',
    test: 'test/flow/cli-resume.test.ts',
    name: 'goes on at once with programs as well, once they have ended',
    code: 'packages/cli/dist/run-leftovers.js',
    edits: [{ from: 'for (const worker of freed)', to: 'for (const worker of [])' }],
  },
  {
    cure: 'bytes that are no text are refused',
    test: 'test/flow/cli-input.test.ts',
    name: 'a letter that is cut off is refused with file and line',
    code: 'packages/producer/dist/utf8-check.js',
    edits: [{ from: 'this.#begun.length === 0 ? null : this.#error(this.#begun)', to: 'null' }],
  },
];
