import { describe, expect, it } from 'vitest';
import type { Snapshot } from '../../packages/notifier/dist/progress/snapshot.js';
import { whyOf } from '../../packages/notifier/dist/progress/why.js';

/*
 * Why a request is not further, or ended as it did: one sentence for each cause, and which cause goes before which.
 */

const NOW = Date.UTC(2026, 10, 28, 20);
const S = 1_000;

const COUNTS = {
  ...{ total: 10, ready: 0, inFlight: 0, delayed: 0, succeeded: 0, failed: 0, cancelled: 0 },
};

const worker = (more: object = {}) => ({
  ...{ id: 'w1', host: 'h', pid: 7, concurrency: 4, running: 0, tasks: '*' as const },
  ...{
    startedAt: 1,
    seenAt: NOW - 2 * S,
    draining: false,
    longest: [],
    leftovers: 0,
    ready: true,
    why: [],
  },
  ...more,
});

const run = (requestId: string, forS: number, medianMs?: number) => ({
  ...{ requestId, index: 7, attempt: 1, startedAt: NOW - forS * S },
  ...(medianMs === undefined ? {} : { medianMs }),
});

const IDLE = {
  pausedUntil: undefined,
  pausedSince: undefined,
  workers: [worker()],
  memory: undefined,
};

function snapshot({
  counts,
  queue,
  ...more
}: Partial<Omit<Snapshot, 'counts' | 'queue'>> & {
  counts?: Partial<Snapshot['counts']>;
  queue?: Partial<Snapshot['queue']>;
} = {}): Snapshot {
  return {
    ...{ id: 'r', status: 'sealed', outcome: undefined, endReason: undefined, running: 0 },
    ...{ readAt: NOW, priority: 50, limit: null, task: undefined, heldUntil: undefined },
    ...{ deadline: undefined, silentWorkers: [], producer: undefined, retry: undefined },
    ...{
      heldSince: undefined,
      heldForMemory: false,
      paused: false,
      parked: false,
      keepsResults: true,
    },
    ...{ toleratedFailures: '0', holders: [], others: [] },
    ...more,
    counts: { ...COUNTS, ...counts },
    queue: { ...IDLE, ...queue },
  };
}

const DENIED = 'no blocking connection to Redis: the Redis user may not run blmpop';
const READY = { counts: { ready: 10 } };
const silent = { worker: 'w9', inFlight: 3, seenAt: NOW - 13 * S, leaseEndsAt: NOW + 17 * S };
const producer = (forS: number) => ({
  ...{ seenAt: NOW - forS * S, leaseEndsAt: NOW + (30 - forS) * S, ifLost: 'cancel' as const },
});
const done = (more: object) => ({ status: 'complete', ...more });

type Case = readonly [Parameters<typeof snapshot>[0], string | undefined, string];

const CASES: Readonly<Record<string, readonly Case[]>> = {
  'it ended': [
    [
      done({ outcome: 'succeeded', counts: { succeeded: 10 } }),
      undefined,
      'it succeeded: all 10 sub-requests did',
    ],
    [
      done({ outcome: 'succeeded', counts: { total: 0 } }),
      undefined,
      'it succeeded: it had no sub-requests',
    ],
    [
      done({ outcome: 'succeeded', counts: { succeeded: 7, failed: 3 }, toleratedFailures: '5%' }),
      undefined,
      'it succeeded: 3 of 10 sub-requests failed, and it tolerates 5%',
    ],
    [
      done({ outcome: 'failed', counts: { succeeded: 7, failed: 3 } }),
      undefined,
      'it failed: 3 of 10 sub-requests failed, and it tolerates 0',
    ],
    [
      done({
        ...{ outcome: 'failed', endReason: 'failures', toleratedFailures: '2' },
        counts: { succeeded: 4, failed: 3, cancelled: 3 },
      }),
      undefined,
      'it ended early, as too many of its sub-requests failed, more than the 2 tolerated; 4 succeeded, 3 failed and 3 were cancelled',
    ],
    [
      done({ outcome: 'failed', endReason: 'deadline', counts: { succeeded: 4, cancelled: 6 } }),
      undefined,
      'it ended early, as its deadline passed; 4 succeeded, 0 failed and 6 were cancelled',
    ],
    [
      done({ outcome: 'cancelled', endReason: 'producer-lost', counts: { cancelled: 10 } }),
      undefined,
      'it ended early, as its producer was lost before all items were in; 0 succeeded, 0 failed and 10 were cancelled',
    ],
  ],
  'it is being cancelled': [
    [
      { status: 'cancelling', endReason: 'failures', counts: { inFlight: 2 }, running: 2 },
      undefined,
      'it is being cancelled, as too many of its sub-requests failed; 2 have not ended yet',
    ],
    [
      {
        status: 'cancelling',
        endReason: 'cancel',
        counts: { inFlight: 3 },
        silentWorkers: [silent],
      },
      undefined,
      'it is being cancelled; 3 are on a worker last seen 13 s ago; taken over in about 17 s. Wait: another worker takes over by itself',
    ],
  ],
  'its deadline passed, and nobody has ended it': [
    [
      { ...READY, deadline: NOW - 3 * S },
      undefined,
      'its deadline passed 3 s ago; it ends when a worker runs, or somebody waits for it',
    ],
  ],
  'it is paused': [
    [{ ...READY, paused: true }, 'resume', 'it is paused. Resume it'],
    [
      { paused: true, running: 1, counts: { ready: 9, inFlight: 1 } },
      'resume',
      'it is paused; 1 still runs. Resume it',
    ],
  ],
  'its queue is paused': [
    [{ ...READY, queue: { pausedUntil: 0 } }, 'queue', 'its queue is paused. Resume the queue'],
    [
      { ...READY, queue: { pausedUntil: NOW + 300 * S, pausedSince: NOW - 20 * S } },
      'queue',
      'its queue is paused until 2026-11-28T20:05:00Z (in 5 min; so far for 20 s). Wait, or resume the queue',
    ],
  ],
  'nobody serves its task': [
    [
      { ...READY, parked: true, task: 'mail', queue: { workers: [worker({ tasks: ['other'] })] } },
      'task',
      'no worker serves task mail. Start one that does, or cancel the request if the name is wrong',
    ],
    [
      { ...READY, queue: { workers: [worker({ tasks: ['mail'] })] } },
      'task',
      'no worker serves requests without a task. Start one that does, or cancel the request if the name is wrong',
    ],
  ],
  'its start is delayed': [
    [
      { ...READY, heldUntil: NOW + 300 * S, heldSince: 'created' },
      'time',
      'its start is delayed until 2026-11-28T20:05:00Z (in 5 min). Wait, or cancel it and submit it without the delay',
    ],
  ],
  'it is held': [
    [
      { ...READY, heldUntil: NOW + 300 * S, heldSince: NOW - 60 * S },
      'time',
      'it is held by its handler until 2026-11-28T20:05:00Z (in 5 min; so far for 60 s). Wait: nothing ends a hold earlier',
    ],
  ],
  'its queue has no worker': [
    [
      { ...READY, queue: { workers: [] } },
      'worker',
      'its queue has no worker. Start one, as `new Worker` or `piecework worker`: it will run then',
    ],
    [
      { ...READY, queue: { workers: [worker({ draining: true })] } },
      'worker',
      'all workers of its queue are closing. Start one, as `new Worker` or `piecework worker`: it will run then',
    ],
    [
      {
        ...{ counts: { inFlight: 3 }, running: 3, queue: { workers: [] } },
        silentWorkers: [{ ...silent, seenAt: NOW - 34 * S, leaseEndsAt: NOW - 4 * S }],
      },
      'worker',
      '3 are on a worker last seen 34 s ago; its queue has no worker. Start one, as `new Worker` or `piecework worker`: it will run then',
    ],
  ],
  'the workers that serve it are gone or closing': [
    [
      {
        ...{ ...READY, task: 'mail' },
        queue: {
          workers: [
            worker({ id: 'w1', tasks: ['mail'], draining: true, running: 2 }),
            worker({ id: 'w2', tasks: ['other'] }),
          ],
        },
      },
      'worker',
      'all workers that serve task mail are closing. Start one, as `new Worker` or `piecework worker`: it will run then',
    ],
    [
      {
        ...{ ...READY, task: 'mail' },
        queue: {
          workers: [
            worker({ id: 'w1', tasks: ['mail'], seenAt: NOW - 30 * S }),
            worker({ id: 'w2', tasks: ['other'] }),
          ],
        },
      },
      'worker',
      'the only worker that serves task mail was last seen 30 s ago. Start another one; if its process still runs, a handler may block its event loop',
    ],
  ],
  'its worker is silent': [
    [
      { counts: { inFlight: 3 }, running: 3, silentWorkers: [silent] },
      'lease',
      '3 are on a worker last seen 13 s ago; taken over in about 17 s. Wait: another worker takes over by itself',
    ],
  ],
  'a handler blocks its worker': [
    [
      {
        ...{ counts: { inFlight: 1 }, running: 1 },
        holders: [{ worker: 'w1', renewedAt: NOW - 5 * S }],
        queue: { workers: [worker({ seenAt: NOW - 40 * S })] },
      },
      'handler',
      'worker w1 has reported nothing for 40 s, and its lease is renewed. A handler may block its event loop; if it stays so, end that process',
    ],
    [
      {
        ...{ counts: { inFlight: 1 }, running: 1 },
        holders: [{ worker: 'w1', renewedAt: NOW - 50 * S }],
        queue: { workers: [worker({ seenAt: NOW - 40 * S })] },
      },
      'handler',
      'worker w1 has reported nothing for 40 s, and the renewal of its lease is not due yet. Wait: if it has ended, another worker takes over when its lease is over',
    ],
  ],
  'its worker is to run it alone': [
    [
      {
        ...{ counts: { inFlight: 1 }, running: 1 },
        queue: { workers: [worker({ suspects: { requests: ['r'], wait: true } })] },
      },
      'slots',
      'sub-requests of it whose workers died wait to run alone on worker w1, until the handlers beside them end. Wait, or start another worker',
    ],
  ],
  'a handler hangs': [
    [
      {
        ...{ counts: { inFlight: 2, ready: 8 }, running: 2 },
        queue: { workers: [worker({ running: 2, longest: [run('r', 40, 20)] })] },
      },
      'handler',
      'sub-request 7 has been running for 40 s on w1, usually 20 ms; 1 more runs. If it hangs, end that process; attemptTimeoutMs bounds an attempt',
    ],
  ],
  'Redis is full': [
    [
      { ...READY, queue: { memory: { used: 87, most: 100 } } },
      'memory',
      'Redis is nearly full (87 % of maxmemory), and its results need room. Raise maxmemory, or drop complete requests',
    ],
    // Workers hold it for a few seconds, again and again, until there is more room.
    [
      {
        ...{ ...READY, heldUntil: NOW + 4 * S, heldSince: NOW - S, heldForMemory: true },
        queue: { memory: { used: 97, most: 100 } },
      },
      'memory',
      'Redis is nearly full (97 % of maxmemory), and its results need room. Raise maxmemory, or drop complete requests',
    ],
    [
      {
        ...{ counts: { ready: 9, inFlight: 1 }, running: 1 },
        ...{ heldUntil: NOW + 4 * S, heldSince: NOW - S, heldForMemory: true },
        queue: { memory: { used: 101, most: 100 } },
      },
      'memory',
      'Redis is full (101 % of maxmemory), and its results need room; 1 still runs. Raise maxmemory, or drop complete requests',
    ],
    [
      {
        ...{ ...READY, heldUntil: NOW + 4 * S, heldSince: NOW - S, heldForMemory: true },
        queue: { memory: { used: 82, most: 100 } },
      },
      'memory',
      'Redis is nearly full, and its results need room. Raise maxmemory, or drop complete requests',
    ],
  ],
  'its producer has not sealed it': [
    [
      { status: 'open', producer: producer(2), counts: { succeeded: 10 } },
      'producer',
      'all that was added is done, and its producer has not sealed it; its producer was last seen 2 s ago. Cancel the request if nothing more comes',
    ],
    [
      { status: 'open', producer: producer(20), counts: { total: 0 } },
      'producer',
      'nothing was added yet, and its producer has not sealed it; its producer was last seen 20 s ago; cancelled in about 10 s. Cancel the request if nothing more comes',
    ],
  ],
  'retries wait': [
    [
      {
        counts: { delayed: 3, succeeded: 7 },
        retry: {
          dueAt: NOW + 5 * S,
          lastError: { index: 4, name: 'TypeError', message: 'x is undefined' },
        },
      },
      'retry',
      '3 wait for their next attempt, the first is due in 5 s; the last error: TypeError: x is undefined (index 4). Wait, or cancel the request if it cannot succeed',
    ],
    [
      { counts: { delayed: 1, succeeded: 9 }, retry: { dueAt: NOW + 5 * S, lastError: undefined } },
      'retry',
      '1 waits for its next attempt, which is due in 5 s. Wait, or cancel the request if it cannot succeed',
    ],
  ],
  'other requests have all slots': [
    [
      {
        ...READY,
        others: [
          { id: 'a', priority: 10 },
          { id: 'b', priority: 50 },
          { id: 'c', priority: 50 },
        ],
        queue: {
          workers: [
            worker({ running: 4, longest: [run('a', 240), run('b', 3)] }),
            worker({ id: 'w2', running: 4, longest: [run('c', 9)] }),
          ],
        },
      },
      'slots',
      'all 8 slots of 2 workers are taken by handlers of a (priority 10), b (priority 50) and 1 more, the oldest running for 4 min; it has priority 50, and smaller numbers go first. More workers let it start sooner; they are needed if those handlers wait for it',
    ],
    [
      { ...READY, queue: { workers: [worker({ running: 4 })] } },
      'slots',
      'all 4 slots of one worker are taken by handlers; it has priority 50, and gets its share of the next free slots. More workers let it start sooner; they are needed if those handlers wait for it',
    ],
    [READY, undefined, 'it waits for its turn; 4 of 4 slots were free when last reported, 2 s ago'],
  ],
  'workers take no work': [
    [
      { ...READY, queue: { workers: [worker({ ready: false, why: [DENIED] })] } },
      'worker',
      `worker w1 takes no work: ${DENIED}. Correct this, or start a worker that can`,
    ],
    [
      {
        ...READY,
        queue: {
          workers: [
            worker({ seenAt: NOW - 9 * S }),
            ...['w2', 'w3'].map((id) => worker({ id, ready: false, why: [DENIED] })),
          ],
        },
      },
      'worker',
      `worker w2 takes no work: ${DENIED}; 2 more take none. Correct this, or start a worker that can`,
    ],
    [
      {
        ...READY,
        queue: { workers: [worker(), worker({ id: 'w2', ready: false, why: [DENIED] })] },
      },
      undefined,
      `it waits for its turn; 4 of 4 slots were free when last reported, 2 s ago; worker w2 takes no work: ${DENIED}. Correct this, or start a worker that can`,
    ],
    [
      {
        ...READY,
        queue: {
          workers: [
            worker({ running: 4 }),
            worker({ id: 'w2', running: 1, ready: false, why: [DENIED] }),
          ],
        },
      },
      'slots',
      `all 5 slots of 2 workers are taken by handlers; it has priority 50, and gets its share of the next free slots; worker w2 takes no work: ${DENIED}. Correct this, or start a worker that can`,
    ],
    [
      {
        ...{ counts: { inFlight: 4, ready: 6 }, running: 4 },
        queue: {
          workers: [worker({ running: 4 }), worker({ id: 'w2', ready: false, why: [DENIED] })],
        },
      },
      undefined,
      `4 run and 6 wait for a slot: all 4 are taken; worker w2 takes no work: ${DENIED}. Correct this, or start a worker that can`,
    ],
    [
      {
        ...{ counts: { inFlight: 2, ready: 8 }, running: 2, limit: 2 },
        queue: { workers: [worker({ running: 2, ready: false, why: [DENIED] })] },
      },
      undefined,
      '2 run, as many as its limit allows, and 8 wait',
    ],
    // It works in spite of it.
    [
      { ...READY, queue: { workers: [worker({ why: ['the renewal thread is down: x'] })] } },
      undefined,
      'it waits for its turn; 4 of 4 slots were free when last reported, 2 s ago',
    ],
  ],
  'a worker missed its report': [
    [
      { ...READY, queue: { workers: [worker({ seenAt: NOW - 7 * S })] } },
      undefined,
      'worker w1 was last seen 7 s ago and may have ended. Start another worker if it has; if not, its log says why it does not report',
    ],
    // A frugal one is not late.
    [
      { ...READY, queue: { workers: [worker({ seenAt: NOW - 40 * S, restMs: 50 * S })] } },
      undefined,
      'it waits for its turn; 4 of 4 slots were free when last reported, 40 s ago',
    ],
  ],
  'handlers that ignore their signal have slots': [
    [
      { ...READY, queue: { workers: [worker({ leftovers: 4 })] } },
      'slots',
      'all 4 slots of one worker are taken by handlers that ignore their abort signal (on w1). End process 7 on h; the handler should heed ctx.signal',
    ],
    [
      { ...READY, queue: { workers: [worker({ concurrency: 1, leftovers: 1 })] } },
      'slots',
      'the only slot of one worker is taken by a handler that ignores its abort signal (on w1). End process 7 on h; the handler should heed ctx.signal',
    ],
    [
      {
        ...READY,
        others: [{ id: 'a', priority: 50 }],
        queue: {
          workers: [
            worker({ running: 3, leftovers: 1, longest: [run('a', 9)] }),
            worker({ id: 'w2', pid: 8, running: 2, leftovers: 2 }),
          ],
        },
      },
      'slots',
      'all 8 slots of 2 workers are taken by handlers of a (priority 50), the oldest running for 9 s; 3 slots are kept by handlers that ignore their abort signal (2 on w2, 1 on w1). End process 8 on h, then those of the others; the handler should heed ctx.signal',
    ],
    [
      {
        ...{ counts: { inFlight: 2, ready: 8 }, running: 2 },
        queue: { workers: [worker({ running: 2, leftovers: 2 })] },
      },
      undefined,
      '2 run and 8 wait for a slot: all 4 are taken; 2 slots are kept by handlers that ignore their abort signal (on w1). End process 7 on h; the handler should heed ctx.signal',
    ],
  ],
  'it runs': [
    [
      {
        ...{ counts: { inFlight: 2, ready: 8 }, running: 2, limit: 2 },
        queue: { workers: [worker({ running: 2, longest: [run('r', 3, 1_000)] })] },
      },
      undefined,
      '2 run, as many as its limit allows, and 8 wait; sub-request 7 has been running for 3 s on w1, usually 1 s. A higher limit would use the 2 of 4 slots that are free',
    ],
    [
      {
        ...{ counts: { inFlight: 2, ready: 8 }, running: 2 },
        queue: { workers: [worker({ running: 4 })] },
      },
      undefined,
      '2 run and 8 wait for a slot: all 4 are taken',
    ],
    [
      { counts: { inFlight: 1, succeeded: 9 }, running: 1 },
      undefined,
      '1 runs, and none waits for a slot',
    ],
    [{ counts: { succeeded: 10 } }, undefined, 'all is done, and its end is being recorded'],
  ],
};

describe.each(Object.entries(CASES))('%s', (_, cases) => {
  it.each(cases.map((one) => [one[2], one] as const))('%s', (why, [seen, waitingFor]) => {
    expect(whyOf(snapshot(seen))).toEqual({ why, waitingFor });
  });
});

describe('the cause that goes before others', () => {
  it('is the one that hides them, in the order of the table above', () => {
    // Everything at once: taking away the first cause shows the next one.
    const all = {
      ...{ status: 'open', paused: true, parked: true, task: 'mail', running: 1 },
      ...{ counts: { inFlight: 1, ready: 8, delayed: 1 }, deadline: NOW + 60 * S },
      ...{
        heldUntil: NOW + 300 * S,
        silentWorkers: [silent],
        holders: [{ worker: 'w2', renewedAt: NOW }],
      },
      queue: {
        pausedUntil: 0,
        memory: { used: 99, most: 100 },
        workers: [
          worker({ running: 4, tasks: ['other'], longest: [run('r', 40, 20)] }),
          worker({ id: 'w2', tasks: ['other'], seenAt: NOW - 40 * S }),
        ],
      },
    };
    const served = all.queue.workers.map((one) => ({ ...one, tasks: '*' as const }));
    const steps: readonly Parameters<typeof snapshot>[0][] = [
      { paused: false },
      { queue: { ...all.queue, pausedUntil: undefined } },
      { queue: { ...all.queue, pausedUntil: undefined, workers: served } },
      { heldUntil: undefined },
      { silentWorkers: [] },
      { holders: [] },
      { queue: { ...all.queue, pausedUntil: undefined, workers: [worker({ running: 4 })] } },
    ];
    let seen: Parameters<typeof snapshot>[0] = all;
    const found = [undefined, ...steps].map((step) => {
      seen = { ...seen, ...step };
      return whyOf(snapshot(seen)).waitingFor;
    });
    expect(found).toEqual([
      ...['resume', 'queue', 'task', 'time', 'lease', 'handler', 'handler', undefined],
    ]);
    expect(whyOf(snapshot({ ...seen, running: 0 })).waitingFor).toBe('memory');
  });

  it('comes with retries, a silent producer and the deadline, whatever it is', () => {
    const seen = snapshot({
      ...{ status: 'open', producer: producer(20), deadline: NOW + 60 * S, running: 1 },
      counts: { inFlight: 1, delayed: 2 },
      retry: { dueAt: NOW + 5 * S, lastError: undefined },
    });
    expect(whyOf(seen).why).toBe(
      '1 runs, and none waits for a slot; 2 wait for their next attempt, the first is due in 5 s; its producer was last seen 20 s ago; cancelled in about 10 s; its deadline ends it in 60 s',
    );
  });
});
