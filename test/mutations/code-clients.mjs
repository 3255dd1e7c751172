/* Cures of packages/producer, notifier and piecework. */

const HOSTILE = 'test/flow/hostile-throws.test.ts';
const OWN = 'test/flow/own-requests.test.ts';
const TYPED_TASKS = 'test/flow/typed-tasks.test.ts';
const SUBMISSIONS = 'test/crash/lost-submissions.test.ts';

/** @type {import('./cures.mjs').CodeCure[]} */
export const codeClients = [
  {
    cure: 'an id of another queue is not left open here',
    test: 'test/flow/same-id.test.ts',
    name: 'of a request of another queue is not left open here, also under an equal generation',
    change: 'never',
  },
  {
    cure: 'a request that may have ended before it was awaited is read',
    test: OWN,
    name: 'reads the state of a request that may have ended before it is awaited',
  },
  {
    cure: 'requests are awaited on their own channels when that of the process is lost',
    test: OWN,
    name: 'awaits requests on their own channels when the connection of its channel is lost',
  },
  {
    cure: 'a process that missed a message awaits requests on their own channels',
    test: OWN,
    name: 'awaits requests on their own channels after it has missed a message',
  },
  {
    cure: 'what another process dropped is not read from memory',
    test: OWN,
    name: 'is forgotten when another process drops the request',
  },
  {
    cure: 'what was dropped is not read from memory',
    test: OWN,
    name: 'is forgotten when it drops the request',
  },
  {
    cure: 'what was redriven is not read from memory',
    test: OWN,
    name: 'is forgotten when it redrives the request',
  },
  {
    cure: 'results of a request with failures are read as they are now',
    test: OWN,
    name: 'does not serve results of a request that another process may have redriven',
    change: { becomes: 'recent' },
  },
  {
    cure: 'an end that this process undid is not believed again',
    test: OWN,
    name: 'is not taken from a message that was under way when it dropped the request',
  },
  {
    cure: 'a caller that awaits a completion again reads the state',
    test: OWN,
    name: 'serves the first caller that awaits it, and is read by the next',
    change: { becomes: '!kept' },
  },
  {
    cure: 'only the call that made a request relies on the channel that it named',
    test: OWN,
    name: 'relies on its channel only for requests that its own call made',
    change: { becomes: 'named' },
  },
  {
    cure: 'a process that does not await its requests is not told of their ends',
    test: OWN,
    name: 'is not told of the ends of requests that it does not await',
  },
  {
    cure: 'results that a message brings are all of them',
    test: OWN,
    name: 'brings all of them, or none',
    change: 'always',
  },
  {
    cure: 'results at hand are those of different sub-requests',
    test: OWN,
    name: 'in which one is twice is not believed: the stream is read',
    change: { becomes: 'end && itemsAtHand(end)' },
  },
  {
    cure: 'a second pass reads the stream',
    test: OWN,
    name: 'in which one is twice is not believed: the stream is read',
    change: { becomes: '!results' },
  },
  {
    cure: 'the agenda knows of a change before it is made',
    test: 'test/flow/asleep.test.ts',
    name: 'when the process that resumed it died before it notified the queue',
  },
  {
    cure: 'a drop of what is gone is forgotten by the queue',
    test: 'test/flow/control.test.ts',
    name: 'that was cut off half-way is ended by a repetition when its tombstone has expired',
    change: 'always',
  },
  {
    cure: 'another life of an id is not taken for the one that was seen',
    test: 'test/flow/lives.test.ts',
    name: 'failures: nothing, whether it is earlier or later',
    change: 'never',
  },
  {
    cure: 'the end of another life of an id is not taken for that of this one',
    test: 'test/flow/notice.test.ts',
    name: 'of another generation, or of unknown form, causes a read',
    change: { becomes: 'seen <= notice.state.generation' },
  },
  {
    cure: 'progress is not that of another life of the id',
    test: 'test/flow/lives.test.ts',
    name: 'progress: nothing, if it comes back between two reports',
    change: { becomes: 'seen && isActive(seen)' },
  },
  {
    cure: 'a status is not that of another life of the id',
    test: 'test/flow/lives.test.ts',
    name: 'status: nothing, whether it is earlier or later',
    change: { becomes: 'isThere' },
  },
  {
    cure: 'failures are not those of another life of the id',
    test: 'test/flow/lives.test.ts',
    name: 'failures: nothing, if it comes back while they are read',
  },
  {
    cure: 'a failure whose error is lost is read again',
    test: 'test/flow/results-lost-writes.test.ts',
    name: 'come once each if it loses them before the error of one is read: completion',
    change: { becomes: 'this.#twice' },
  },
  {
    cure: 'results are read again in the order of completion',
    test: 'test/flow/results-lost-writes.test.ts',
    name: 'come once each in the order of completion',
    change: 'always',
  },
  {
    cure: 'results are given once in the order of completion',
    test: 'test/flow/results-lost-writes.test.ts',
    name: 'come once each in the order of completion',
    change: { becomes: "(seen.add(item, position), n < done) || item.kind === 'redriven'" },
  },
  {
    cure: 'results are read again in the order of the items',
    test: 'test/flow/results-lost-writes.test.ts',
    name: 'come once each in the order of the items',
    change: 'always',
  },
  {
    cure: 'a result that left its position is awaited',
    test: 'test/flow/results-lost-writes.test.ts',
    name: 'come once each when only their places were kept',
    change: { becomes: 'SKIP' },
  },
  {
    cure: 'a page of long results that is full is not the last',
    test: 'test/flow/results.test.ts',
    name: 'come completely, also where one is much longer than the others',
    change: { becomes: 'complete && page.length < count && chars < SURELY_SHORT_CHARS' },
  },
  {
    cure: 'a cursor whose record is lost is refused',
    test: 'test/flow/results-lost-writes.test.ts',
    name: 'cannot be continued from a cursor that was lost with them',
    change: 'never',
  },
  {
    cure: 'results that are missing of an end that was remembered are read again',
    test: 'test/flow/results.test.ts',
    name: 'are those of a request that another process dropped and submitted again',
    change: 'always',
  },
  {
    cure: 'failures that were evicted are an error',
    test: 'test/flow/eviction.test.ts',
    name: 'results and failures that were evicted are an error, not an empty list',
    change: 'never',
  },
  {
    cure: 'missing results are an error',
    test: 'test/flow/results-lost-writes.test.ts',
    name: 'that are still missing at the end are an error',
    change: 'never',
  },
  ...[
    'another life of the id is not changed',
    'a drop removes no other life of the id',
    'another life of the id is not redriven',
    'what runs of another life of the id is not shown',
  ].map((cure) => ({
    cure,
    test: 'test/flow/control.test.ts',
    name: 'the handle of a request does nothing to another one that has its id by now',
    change: /** @type {const} */ ('never'),
  })),
  {
    cure: 'failures that a redrive took back are missing',
    test: 'test/flow/results.test.ts',
    name: 'do not end without what a redrive took back while they were read: completion',
    change: 'never',
  },
  {
    cure: 'the doctor reports times of a queue that lie ahead',
    test: 'test/flow/doctor-clocks.test.ts',
    name: 'are found for a queue and for a request, until they have healed',
    change: 'always',
  },
  {
    cure: 'the doctor reports leases that lie ahead',
    test: 'test/flow/doctor-clocks.test.ts',
    name: 'are found for a queue and for a request, until they have healed',
    change: 'never',
  },
  {
    cure: 'the doctor reports keys that expire while the server works',
    test: 'test/flow/doctor-servers.test.ts',
    name: 'of ended requests that keep much, if Redis frees what expires at once',
    change: 'always',
  },
  {
    cure: 'intent before create',
    test: 'test/flow/crossings.test.ts',
    name: 'what exists of the request is on the agenda',
    changes: [
      { cure: 'intent before create', change: { becomes: 'Date.now()' } },
      {
        cure: 'the agenda entry of a create',
        change: {
          becomes: "made.verdict === 'created' && (await queue.reopen(id, generation), true)",
          uses: ['reopen'],
        },
      },
    ],
  },
  {
    cure: 're-read after reconnect',
    test: 'test/flow/completion.test.ts',
    name: 'completed while its connection is cut',
    change: {
      becomes: '(channels) => this.#ask(channels.filter((name) => !this.#watches.get(name)?.seen))',
    },
  },
  {
    cure: 'state re-read by the waiter, from time to time',
    test: 'test/flow/completion.test.ts',
    name: 'a notice that never comes',
  },
  {
    cure: 'producer lease, renewed by time',
    test: 'test/flow/open.test.ts',
    name: 'keeps its lease while it is open, and no longer',
    change: { becomes: 'setInterval(() => {}, parts.options.producerLeaseMs / 3)' },
  },
  {
    cure: 'a listener of a notifier ends nothing',
    test: HOSTILE,
    name: 'a listener of a notifier may throw anything: waiting callers get their completion',
    change: { becomes: 'listener' },
  },
  {
    cure: 'a line that is too long is refused',
    test: 'test/flow/lines.test.ts',
    name: 'is named by its number',
    change: 'always',
  },
  {
    cure: 'of several calls that submit the same, one creates the request',
    test: TYPED_TASKS,
    name: 'for an id, also when several ask at the same time',
    change: { becomes: '() => true' },
  },
  {
    cure: 'appends keep their order while items are checked',
    test: TYPED_TASKS,
    name: 'keeps the order if checks are asynchronous, and seals after them',
    change: { becomes: 'Promise.all(checks).then(() => this.#add(payloads))' },
  },
  {
    cure: 'a request without a limit keeps the digest that it had with the default',
    test: 'test/flow/no-limit.test.ts',
    name: 'what a release with a default limit of 10 submitted is recognised',
    change: { becomes: "(limit) => (limit === 10 ? '10' : (limit ?? null))" },
  },
  {
    cure: 'state re-read by the waiter, often while few wait',
    test: 'test/flow/lost-notices.test.ts',
    name: 'within two seconds where 1 are',
    change: { becomes: '1' },
  },
  {
    cure: 'a seal checks both sides again after a reconnect',
    test: SUBMISSIONS,
    name: 'whichever round trip comes then, what is acknowledged will run: one of several chunks',
    change: { becomes: 'open' },
  },
  {
    cure: 'a redriven request stays in its queue, and in its shard',
    test: 'test/flow/redrive.test.ts',
    name: 'stays in the queue of the request, whichever queue its caller has',
  },
  {
    cure: 'what was redriven since was complete',
    test: 'test/flow/redrive-crossings.test.ts',
    name: 'knows that it was carried out, when another redrive followed it',
  },
  {
    cure: 'a redrive that another one followed is not called dropped',
    test: 'test/flow/redrive-crossings.test.ts',
    name: 'is not called dropped, when its generation was cancelled and another followed',
  },
  {
    cure: 'a request that was submitted again is another one',
    test: 'test/flow/redrive-crossings.test.ts',
    name: 'is dropped, when the request was dropped and redriven after it was submitted again',
  },
  {
    cure: 'a lost request is not reported as completed',
    test: 'test/flow/lost.test.ts',
    name: 'a request that no longer exists, and that is not known to have ended, is a LostError',
    change: { becomes: 'seen > 0' },
  },
  {
    cure: 'the usual duration says which handlers are slow',
    test: 'test/flow/running.test.ts',
    name: 'warns of a handler that runs ten times as long as usual, a minute at least',
    change: { becomes: 'Math.ceil(slowMs ?? slowAfterMs(undefined))' },
  },
  {
    cure: 'a handle that redrives a request knows its new generation',
    test: 'test/flow/redrive.test.ts',
    name: 'that the server lost is an error for callers that await it, and can be repeated',
  },
  {
    cure: 'bytes that are not UTF-8 are refused',
    test: 'test/flow/lines.test.ts',
    name: 'text that is not UTF-8 is refused by the number of its line, also a letter that is cut off',
    change: { becomes: 'done(null)' },
  },
  {
    cure: 'input that is not UTF-8 is no item',
    test: 'test/flow/cli-input.test.ts',
    name: 'a letter that is cut off is refused with file and line',
    change: { becomes: 'buffer.toString()' },
  },
  {
    cure: 'a file is emptied before its first line is written',
    test: 'test/flow/output-order.test.ts',
    name: 'an output file is emptied before its first line is written, whoever begins it',
    change: { becomes: 'Promise.resolve()' },
  },
];
