/* Cures of packages/worker. */

const AHEAD = 'test/flow/read-ahead.test.ts';
const SLOW = 'test/flow/slow-worker.test.ts';
const HOSTILE = 'test/flow/hostile-throws.test.ts';

/** @type {import('./cures.mjs').CodeCure[]} */
export const codeWorker = [
  {
    cure: 'a worker whose password is refused says so',
    test: 'test/flow/credentials.test.ts',
    name: 'a worker whose password is refused is not ready, and says why',
    change: { becomes: 'throw error' },
  },
  {
    cure: 'the agenda ticks for each retry',
    test: 'test/flow/retries.test.ts',
    name: 'goes on as soon as it is due: a retry, with one worker',
  },
  {
    cure: 'the agenda ticks at the end of a hold',
    test: 'test/flow/retries.test.ts',
    name: 'goes on as soon as it is due: a hold, with one worker',
  },
  {
    cure: 'a worker that rests ticks when work comes',
    test: 'test/flow/frugal.test.ts',
    name: 'ticks as often as any other while it has work',
  },
  {
    cure: 'one tick that searches is asked for at a time',
    test: 'test/flow/tasks.test.ts',
    name: 'searches for parked requests at the same pace, however many requests it ends',
    change: 'never',
  },
  {
    cure: 'a server that lost what it knew of a worker does not count all of it again',
    test: 'test/flow/history.test.ts',
    name: 'counts nothing twice when the server has forgotten its worker',
  },
  {
    cure: 'what was called before a handler that blocks is sent',
    test: 'test/flow/gathered-writes.test.ts',
    name: 'what was called before a handler that blocks the event loop is sent before it starts',
  },
  {
    cure: 'what runs here is not started again',
    test: 'test/crash/lost-writes.test.ts',
    name: 'brings what a worker runs already, which is not started again',
    change: 'never',
  },
  {
    cure: 'a read that large payloads cut short is not dry',
    test: 'test/flow/settle-reads.test.ts',
    name: 'that is cut short by large payloads does not make its worker leave',
    change: 'always',
  },
  {
    cure: 'what a repeated take brought is compared',
    test: 'test/flow/settle-reads.test.ts',
    name: 'is compared when its reply got lost, and what it took is run',
    change: 'never',
  },
  {
    cure: 'the last reply about a pause counts',
    test: 'test/flow/clock-steps.test.ts',
    name: 'neither resumes a paused queue nor keeps a resumed one paused',
    change: { becomes: 'pausedMs >= 0 && this.#set(true)' },
  },
  {
    cure: 'leave before push',
    test: 'test/flow/crossings.test.ts',
    name: 'is counted before it can be popped, also when its worker leaves',
    changes: [
      {
        cure: 'leave before push',
        change: {
          becomes: `(this.lease.permits > Math.max(keep, running) && (await this.shard.queue.push({
            id: this.id, generation: this.generation, mint: this.lease.permits - Math.max(keep, running), epoch: 1,
            priority: this.#tokens.place.priority,
          })), { keep: Math.max(keep, running), running, read })`,
          uses: ['push', 'queue'],
        },
      },
      {
        cure: 'leave before push, 2',
        change: {
          becomes: 'this.#tokens.settled(freed > 0 ? 0 : settled.mint, settled.epoch, freed)',
        },
      },
    ],
  },
  {
    cure: 'give-back of unstarted reads',
    test: 'test/flow/lease.test.ts',
    name: 'gives back at once the items that arrive while it closes',
  },
  {
    cure: 'give-back of entries that a lost reply brought',
    test: 'test/flow/worker.test.ts',
    name: 'finds the sub-requests of a read whose reply was lost, although it has other work',
  },
  {
    cure: 'self-fencing',
    test: 'test/flow/lease.test.ts',
    name: 'aborts its handlers by its own clock when nothing renews the lease',
    change: 'never',
  },
  {
    cure: 'a suspect runs in isolation',
    test: 'test/flow/alone.test.ts',
    name: 'runs when nothing else runs in its process, of any request, and nothing starts beside it',
    changes: [
      { cure: 'a suspect runs in isolation', change: 'skip' },
      { cure: 'isolation waits until all sessions are quiet', change: 'never' },
    ],
  },
  {
    cure: 'watchdog of the blocking connection',
    test: 'test/flow/dead-connection.test.ts',
    name: 'a worker whose blocking connection died without a word builds a new one',
    change: { becomes: '2_000_000_000' },
  },
  {
    cure: 'an answer that cannot be awaited fails its sub-request',
    test: HOSTILE,
    name: 'may answer anything',
    change: { becomes: '(() => { throw error; })()' },
  },
  {
    cure: 'a value that a listener threw is logged as an error',
    test: HOSTILE,
    name: 'a listener of the worker may throw and reject with anything',
    change: { becomes: 'error' },
  },
  {
    cure: 'the lease is checked before a handler starts',
    test: 'test/crash/thawed-worker.test.ts',
    name: "a worker that froze with the reply to 'settle' in hand starts nothing from it after its lease",
    changes: [
      { cure: 'the lease is checked before suspects are claimed' },
      {
        cure: 'the lease is checked before a handler starts',
        change: { becomes: 'performance.now()' },
      },
    ],
  },
  {
    cure: 'the lease is checked before a suspect starts',
    test: 'test/crash/thawed-worker.test.ts',
    name: "a worker that froze with the reply to 'schedule-tend' in hand starts nothing from it after its lease",
  },
  {
    cure: 'suspects are returned when other handlers do not end',
    test: 'test/flow/alone.test.ts',
    name: 'goes to another process when what runs beside it does not end',
  },
  {
    cure: 'a paused worker searches for no parked requests',
    test: 'test/flow/asleep.test.ts',
    name: 'is not tended for a worker whose queue is paused',
    change: 'always',
  },
  {
    cure: 'a pulse is sent while nothing else is',
    test: 'test/flow/ready.test.ts',
    name: 'a worker whose slots are all taken is not ready once Redis answers nothing, and ready when it does',
  },
  {
    cure: 'a request waits for the room that its results need',
    test: 'test/flow/nearly-full.test.ts',
    name: 'results that need more room than there is are waited with, and none is lost',
    change: 'always',
  },
  {
    cure: 'nothing is read while more waits than one settle takes',
    test: 'test/flow/nearly-full.test.ts',
    name: 'results that need more room than there is are waited with, and none is lost',
    change: 'never',
  },
  {
    cure: 'work that frees memory continues on a nearly full server',
    test: 'test/flow/nearly-full.test.ts',
    name: 'requests that free memory continue while one that needs memory waits, and that one when there is room',
    change: 'always',
  },
  {
    cure: 'a crash makes the company smaller',
    test: 'test/flow/suspects.test.ts',
    name: 'run in a quarter of the company in which they crashed',
    change: { becomes: 'Math.max(1, Math.floor(this.#slots.capacity / SHRINK))' },
  },
  {
    cure: 'suspects of several requests make one company',
    test: 'test/flow/suspects.test.ts',
    name: 'of several requests run together, and no more of them than of one',
    change: { becomes: 'this.active' },
  },
  {
    cure: 'a handler has time after its abort',
    test: 'test/flow/close.test.ts',
    name: 'waits for a handler that clears up after its abort',
    change: 'never',
  },
  {
    cure: 'a blocked event loop is named',
    test: 'test/crash/suspects.test.ts',
    name: 'that blocks its event loop fails with that',
  },
  {
    cure: 'the cause of a lost lease is stored by a later check',
    test: 'test/flow/renewal.test.ts',
    name: 'stores why it gave up a lease once the server lets it',
  },
  {
    cure: 'the payload of a failure counts',
    test: 'test/flow/client-bounds.test.ts',
    name: 'is bounded by the payloads that are kept with failures',
    change: 'never',
  },
  {
    cure: 'a flood of log lines is counted',
    test: 'test/flow/worker-log.test.ts',
    name: 'has five lines of a kind in a flood, and the number of those left out',
    change: 'always',
  },
  {
    cure: 'a slow handler is logged once',
    test: 'test/flow/worker-log.test.ts',
    name: 'has one warning for a handler that runs far longer than usual',
    change: 'always',
  },
  {
    cure: 'a handler that does not stop is seen',
    test: 'test/flow/worker-log.test.ts',
    name: 'has a warning, as probes and the doctor do, for handlers that continue after their abort',
  },
  {
    cure: 'handlers start only in slots that the session occupies',
    test: 'test/flow/hand-over.test.ts',
    name: 'starts nothing in slots of others, also if several of its own handlers end at once',
    change: { becomes: 'Number.POSITIVE_INFINITY' },
  },
  {
    cure: 'a session that leaves keeps permits for what it has read, until their slots are free',
    test: 'test/flow/hand-over.test.ts',
    name: 'has others keep their permits until slots are free, also those that are read to the end',
    change: { becomes: 'Math.min(this.#usable, this.busy + this.#ahead.size)' },
  },
  {
    cure: 'what an expedited request tries again goes before those that were due later',
    test: 'test/flow/expedite.test.ts',
    name: 'keep their order over retries, many slots and a limit of one',
    change: 'never',
  },
  {
    cure: 'what ended is settled as soon as nothing is left to start',
    test: AHEAD,
    name: 'is settled at once',
  },
  {
    cure: 'no outcome waits long while somebody follows the results',
    test: AHEAD,
    name: 'wait for no others while somebody follows the results',
    change: { becomes: 'this.#most' },
  },
  {
    cure: 'no more starts during a settle than it says',
    test: AHEAD,
    name: 'that is lowered before a settle arrives is kept, though handlers end until its reply',
  },
  {
    cure: 'what was read ahead is not started above a lowered limit or on a paused request',
    test: AHEAD,
    name: 'that was lowered lets nothing start that was read ahead before',
  },
  {
    cure: 'who leaves starts nothing of what was read ahead',
    test: AHEAD,
    name: 'in a worker that closes; another one runs it, and no attempt or crash is counted',
  },
  {
    cure: 'a hold starts nothing of what was read ahead',
    test: AHEAD,
    name: 'after a handler held its request',
  },
  {
    cure: 'the lease is checked before what was read ahead starts',
    test: AHEAD,
    name: 'after the lease by the clock of its worker, as behind a handler that blocked it',
    change: { becomes: 'performance.now()' },
  },
  {
    cure: 'what waits behind slow handlers goes back',
    test: AHEAD,
    name: 'behind handlers that turn out slow goes to a worker that is idle',
  },
  {
    cure: 'nothing that was read ahead starts while more waits than one settle takes',
    test: 'test/flow/nearly-full.test.ts',
    name: 'results that need more room than there is are waited with, and none is lost',
  },
  {
    cure: 'others are not read for what goes back',
    test: AHEAD,
    name: 'goes back without others being read for it',
  },
  {
    cure: 'what was taken for short and is not goes back',
    test: AHEAD,
    name: 'takes from one another what was taken for short and is not',
  },
  {
    cure: 'handlers that block do not run on when they were taken for short',
    test: AHEAD,
    name: 'leaves to others what was taken for short, and blocks',
  },
  {
    cure: 'what was read ahead is known',
    test: AHEAD,
    name: 'is known when the reply to a settle was lost',
  },
  {
    cure: 'what was read ahead is not started twice',
    test: 'test/crash/lost-writes.test.ts',
    name: 'brings what a worker has read ahead, which is started once',
    change: 'never',
  },
  {
    cure: 'a slow worker leaves the last sub-requests to others',
    test: SLOW,
    name: 'leaves the last sub-requests to them',
  },
  {
    cure: 'who stands back takes part again',
    test: SLOW,
    name: 'takes part again when they have not done the rest in time',
    change: { becomes: '[]' },
  },
  {
    cure: 'a slow worker reads nothing ahead that others would end sooner',
    test: SLOW,
    name: 'stops reading ahead before that',
  },
  {
    cure: 'equals take turns',
    test: 'test/flow/priority.test.ts',
    name: 'several equal requests take turns',
    change: 'never',
  },
];
