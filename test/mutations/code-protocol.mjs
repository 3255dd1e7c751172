/* Cures of packages/protocol and packages/queues. */

const PACE = 'test/lua/agenda-pace.test.ts';
const HOSTILE = 'test/flow/hostile-throws.test.ts';
const CONNECTIONS = 'test/flow/sentinel-connections.test.ts';
const SIGNALS = 'test/flow/signals.test.ts';

/** @type {import('./cures.mjs').CodeCure[]} */
export const codeProtocol = [
  {
    cure: 'nodes of a cluster are connected to by their names',
    test: 'test/flow/named-cluster.test.ts',
    name: 'is used by the command line with the URLs of some nodes',
    change: { becomes: 'undefined' },
  },
  {
    cure: 'all connections leave a master that is replaced',
    test: CONNECTIONS,
    name: 'every connection leaves a master that hands over before it is demoted',
  },
  {
    cure: 'no connection is made to a master that is being replaced',
    test: CONNECTIONS,
    name: 'no connection is made to a master while another server is promoted',
  },
  {
    cure: 'a failover that was not heard of is noticed',
    test: CONNECTIONS,
    name: 'a failover is noticed that no Sentinel could announce',
  },
  {
    cure: 'a server that takes no writes is left',
    test: CONNECTIONS,
    name: 'behind a fixed address, a server that lost its replicas is left',
  },
  {
    cure: 'a connection is left once',
    test: 'test/flow/server-errors.test.ts',
    name: 'READONLY to many calls under way leaves the connection once',
    change: 'never',
  },
  {
    cure: 'many agendas are ticked less often',
    test: PACE,
    name: 'rests for longer where many agendas are kept, but not beyond what is due',
    change: { becomes: 'LONGEST_MS' },
  },
  {
    cure: 'a full page of parked requests is followed by the next one',
    test: 'test/flow/asleep.test.ts',
    name: 'parked requests of a worker that comes are found page by page without a wait',
    change: 'never',
  },
  {
    cure: 'a tick forgets only the times before it',
    test: PACE,
    name: 'ticks at each time that it was given, whatever it ticks for before',
    change: { becomes: 'this.#known.remove(Infinity)' },
  },
  {
    cure: 'a tick that failed is soon made again for what is due',
    test: PACE,
    name: 'ticks again soon for what was due when a tick failed',
    change: { becomes: 'performance.now() + LONGEST_MS' },
  },
  {
    cure: 'a process keeps the next time of what it wrote back',
    test: PACE,
    name: 'ticks when a request is due next that it has tended',
  },
  {
    cure: 'requests that are due together are written back in due order',
    test: 'test/lua/expedite.test.ts',
    name: 'is pushed in due order by who finds several due',
  },
  {
    cure: 'state re-read by the waiter, once it is subscribed',
    test: 'test/flow/completion.test.ts',
    name: 'is received by callers that await it before, while and after it happens',
  },
  {
    cure: 'a thrown value is examined where nothing can throw',
    test: HOSTILE,
    name: 'may throw and reject with anything',
    change: { becomes: '(thrown, kind) => thrown instanceof kind' },
  },
  {
    cure: 'no listener is left on an abort signal',
    test: SIGNALS,
    name: 'submissions of streams',
    change: 'never',
  },
  {
    cure: 'an answer that has arrived is not late',
    test: 'test/flow/late-timers.test.ts',
    name: 'is answered if its answer arrived while the event loop stood still beyond the bound',
    change: { becomes: 'then' },
  },
  {
    cure: 'long timers are set in parts',
    test: SIGNALS,
    name: 'is waited for in parts',
    change: 'always',
  },
  {
    cure: 'replies of another shape are refused',
    test: 'test/flow/reply-shapes.test.ts',
    name: 'by all who are given a client of replyMapping resp3',
    change: { becomes: "'none'" },
  },
  {
    cure: 'a take that brings fewer items than asked for is continued',
    test: 'test/flow/timed-large.test.ts',
    name: 'are taken in several calls, as many as were asked for',
    change: 'never',
  },
  {
    cure: 'long keys are remembered by a digest',
    test: 'test/flow/timed-large.test.ts',
    name: 'are remembered by a digest: a Map compares long texts of one length one by one',
    change: { becomes: '(key) => key' },
  },
  {
    cure: 'a payload that is read to settle its item counts',
    test: 'test/flow/timed-large.test.ts',
    name: 'items with large payloads that failed are put back in several calls',
    change: { becomes: '({ key, value }) => 3 * (key.length + String(value).length)' },
  },
  {
    cure: 'the own clock is read before an item is handed out',
    test: 'test/flow/late-replies.test.ts',
    name: 'an item whose take is answered after its lease is not handed out under that lease',
    change: { becomes: 'ready && !ready.isEnded' },
  },
  {
    cure: 'cached key names are evicted',
    test: 'test/flow/client-bounds.test.ts',
    name: 'the names of a queue’s keys are kept for the queues used last, not for each that ever was',
    change: 'never',
  },
  {
    cure: 'a request that the queue side lost is opened again',
    test: 'test/flow/lost.test.ts',
    name: 'a worker of a request that the queue has lost opens it there again',
    change: 'always',
  },
  {
    cure: 'a completion that the server lost removes nothing from the queue side',
    test: 'test/flow/lost.test.ts',
    name: 'a request that a failover brought back stays open on the queue side',
    change: 'never',
  },
  {
    cure: 'a drop that the server lost is repeated',
    test: 'test/flow/lost.test.ts',
    name: 'a drop whose request its server brought back drops it again',
    change: 'never',
  },
  {
    cure: 'a call that follows from a reply uses the connection of that reply',
    test: 'test/flow/lost.test.ts',
    name: 'what follows from an answer goes over the connection of that answer, and over no later one',
    change: 'never',
  },
  {
    cure: 'a call that is refused for one request refuses no other',
    test: 'test/flow/gathered-calls.test.ts',
    name: 'refuse no other request for one that cannot be read',
    change: 'never',
  },
  {
    cure: 'an ASKING without a reply does not end the process',
    test: 'test/cluster/ioredis-internals.test.ts',
    name: 'survives that the connection closes before the reply to ASKING',
  },
  {
    cure: 'ends in one call were reported over one connection',
    test: 'test/flow/lost.test.ts',
    name: 'ends that were reported over different connections do not share a call',
    change: { becomes: '() => 0' },
  },
  {
    cure: 'the settings of a server are checked again',
    test: 'test/flow/lost.test.ts',
    name: 'a running producer notices a policy that evicts, and its end',
  },
  {
    cure: 'a repeated check reads the settings of a server again',
    test: 'test/flow/lost.test.ts',
    name: 'a check that is repeated notices a policy that evicts, and its end',
  },
  {
    cure: 'workers log sub-requests that failed by crashes',
    test: 'test/flow/worker-log.test.ts',
    name: 'has a warning when sub-requests fail because their workers ended too often',
    change: 'never',
  },
  {
    cure: 'a client of an own server does not connect to what listens there after its end',
    test: 'test/flow/own-server.test.ts',
    name: 'no client gives its password to another program at the port of an own server that has ended',
    change: 'never',
  },
];
