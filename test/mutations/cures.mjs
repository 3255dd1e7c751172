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
const REDRIVE = 'test/lua/cures-redrive.test.ts';

const LOST = 'test/lua/cures-lost.test.ts';
const SUBMISSIONS = 'test/crash/lost-submissions.test.ts';

/** @type {LuaCure[]} */
export const luaCures = [
  {
    cure: 'a living request takes the place of the intent that it refused',
    test: LOST,
    history: 'in place of an intent',
  },
  { cure: 'a swap says that nothing was returned', test: LOST, history: 'closed, swap' },
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
];

/** Tests that switch off a flag: one for each script, all of which have to pass. */
export const flagCure = {
  cure: 'allow-oom on draining scripts',
  test: 'test/lua/memory.test.ts',
  names: /^needs allow-oom in /,
};

const ENGAGEMENT = 'packages/worker/dist/engagement.js';

/** @type {CodeCure[]} */
export const codeCures = [
  {
    cure: 'what lives is opened again where the queue side has lost it',
    test: 'test/flow/lost.test.ts',
    name: 'who works at a request that the queue has lost opens it again',
    code: 'packages/protocol/dist/tell-open.js',
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
    edits: [{ from: 'if (open && !seen.broke())', to: 'if (open)' }],
  },
  {
    cure: 'an end that the server lost takes nothing off the queue side',
    test: 'test/flow/lost.test.ts',
    name: 'what lives again behind a new connection stays open on the queue side',
    code: 'packages/protocol/dist/tell-open.js',
    edits: [{ from: 'if (connection.epoch !== seen) {', to: 'if (false) {' }],
  },
  {
    cure: 'lost is not told as completed',
    test: 'test/flow/lost.test.ts',
    name: 'a request that is not there any more, and that nobody knows to have ended, is told to be lost',
    code: 'packages/notifier/dist/look.js',
    edits: [{ from: 'if (open === undefined && endedAt !== undefined)', to: 'if (seen > 0)' }],
  },
  {
    cure: 'a server that was fit is looked at again',
    test: 'test/flow/lost.test.ts',
    name: 'a policy that evicts is noticed by a producer that lives, and so is its end',
    code: 'packages/protocol/dist/connection.js',
    edits: [{ from: 'this.#lookAgain();', to: 'void 0;' }],
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
    code: 'packages/protocol/dist/agenda.js',
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
    code: ENGAGEMENT,
    edits: [
      {
        from: 'const numbers = { op, since, leaseMs, keep, running, read };',
        to: `const numbers = { op, since, leaseMs, keep, running, read };
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
    code: ENGAGEMENT,
    edits: [{ from: "this.#outcomes.push({ entry: entry.entry, kind: 'b' });", to: ';' }],
  },
  {
    cure: 'give-back of what a lost reply brought',
    test: 'test/flow/worker.test.ts',
    name: 'finds what a lost reply took along, though it stays engaged',
    code: 'packages/worker/dist/leases.js',
    edits: [{ from: 'engagement.compare(this.#leaseMs / 3);', to: '' }],
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
    code: 'packages/protocol/dist/subscriber.js',
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
    edits: [{ from: 'this.#ask(this.#watches.keys());', to: '' }],
  },
  {
    cure: 'self-fencing',
    test: 'test/flow/lease.test.ts',
    name: 'aborts its handlers by its own clock when nothing renews the lease',
    code: ENGAGEMENT,
    edits: [
      {
        from: 'if (over())',
        to: 'if (false)',
      },
    ],
  },
  {
    cure: 'a suspect runs alone',
    test: 'test/flow/alone.test.ts',
    name: 'runs when nothing else runs in its process, of any request, and nothing starts beside it',
    code: 'packages/worker/dist/alone.js',
    edits: [
      { from: 'if (!run || !this.#holder?.quiet || this.#handlers() > 0)', to: 'if (!run)' },
      { from: 'if (one !== this.#holder)', to: 'if (false)' },
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
    code: 'packages/worker/dist/intake.js',
    edits: [{ from: 'BLOCK_SECONDS * 1_000 + WATCHDOG_MS', to: '2_000_000_000' }],
  },
];
