import {
  ControlCommands,
  type Outcome,
  QueueControlCommands,
  ReaderCommands,
} from '@piecework/protocol';
import { run } from '@piecework/protocol/testing';
import type { ScriptName } from '../../../scripts/lua-source.mjs';
import { create, holds, items, LEASE_MS, PRODUCER, type Scene } from '../../support/given.js';
import { peek, peekQueue } from '../../support/peek.js';
import { againstCluster } from '../../support/redis.js';
import { REDRIVE_LEASE_MS, REDRIVER, redriveOf } from '../../support/redriven.js';
import { submitWhole } from '../../support/whole.js';
import { timedCalls } from './timed.js';

/*
 * Calls of every script, with arguments of several kinds: of the right generation, an older, a newer
 * one; of a worker that holds permits and of one that does not; numbered late, and in time.
 */

export interface Call {
  readonly script: ScriptName;
  readonly name: string;
  readonly send: (scene: Scene) => Promise<unknown>;
}

const OPS = { late: 1, 'in time': 9 } as const;
const WORKERS = ['worker', 'stranger'] as const;

const outcomes = (generation: number): Record<string, readonly Outcome[]> => {
  const [first, second] = [`${generation}-0`, `${generation}-1`] as const;
  const failed = { kind: 'f', value: '{}' } as const;
  return {
    nothing: [],
    successes: [first, second].map((entry) => ({ entry, kind: 's', value: '1' })),
    'a failure, a retry at once': [{ entry: first, ...failed, delayMs: 0 }],
    'a failure, a retry later': [{ entry: second, ...failed, delayMs: 5_000 }],
    'one back': [{ entry: second, kind: 'b' }],
    'all kinds': [
      { entry: first, kind: 'b' },
      { entry: second, kind: 's', value: '1' },
      { entry: `${generation}-99`, ...failed, delayMs: 0 },
    ],
  };
};

function settles(generation: number): Call[] {
  const calls: Call[] = [];
  for (const worker of WORKERS) {
    for (const [when, op] of Object.entries(OPS)) {
      for (const [what, list] of Object.entries(outcomes(generation))) {
        const keep = what === 'successes' || what === 'nothing' ? 0 : 1;
        // Nobody reports a success of what he has not read, so it cannot be what the same call reads.
        const mayRead = keep > 0 && list.every(({ kind }) => kind !== 's');
        for (const read of mayRead ? [0, 2] : [0]) {
          const numbers = { op, leaseMs: LEASE_MS, keep, running: 0, read };
          calls.push({
            script: 'settle',
            name: `${what}, a ${worker}, ${when}, reads ${read}`,
            send: ({ request }) => request.settle(generation, worker, numbers, list),
          });
        }
      }
    }
  }
  return calls;
}

function enters(generation: number): Call[] {
  const calls: Call[] = [];
  for (const worker of WORKERS) {
    for (const [when, op] of Object.entries(OPS)) {
      for (const epochs of [[], ['1'], ['2', '1', '1']]) {
        for (const tasks of epochs.length === 1 ? ['*', ' tax '] : ['*']) {
          calls.push({
            script: 'enter',
            name: `a ${worker}, ${when}, tokens [${epochs}], tasks ${tasks}`,
            send: ({ request }) =>
              request.enter({ generation, worker, op, want: 2, leaseMs: LEASE_MS, tasks, epochs }),
          });
        }
      }
    }
  }
  return calls;
}

/** Calls of the request side under one generation. */
function ofRequest(generation: number, epochBefore: string): Call[] {
  const call = (script: ScriptName, name: string, send: Call['send']): Call => ({
    script,
    name,
    send,
  });
  const of = (scene: Scene): Scene => ({ ...scene, generation });
  return [
    ...['owner', 'another'].map((owner) =>
      call('create', `by ${owner}`, (scene) => create(of(scene), { owner })),
    ),
    ...['maker', 'another'].map((owner) =>
      call('create', `with items, by ${owner}`, (scene) =>
        create(of(scene), { owner }, { call: 'call', items: items(3) }),
      ),
    ),
    ...[0, 2, 4, 99].map((first) =>
      call('append', `from ${first}`, ({ request }) =>
        request.append(generation, PRODUCER, first, items(3, first)),
      ),
    ),
    call('append', 'by another producer', ({ request }) =>
      request.append(generation, 'another', 0, items(2)),
    ),
    call('renew-producer', '', ({ request }) => request.renewProducer(generation)),
    ...[0, 3, 99].map((sent) =>
      call('seal', `of ${sent}`, ({ request }) => request.seal(generation, PRODUCER, sent)),
    ),
    ...enters(generation),
    ...settles(generation),
    ...WORKERS.flatMap((worker) => [
      call('take', `by a ${worker}`, ({ request }) => request.take(generation, worker, 9)),
      call('take', `numbered, by a ${worker}`, ({ request }) =>
        request.take(generation, worker, 1, 99),
      ),
      call('renew', `by a ${worker}`, ({ request }) =>
        request.renew(generation, worker, LEASE_MS, [1, 7]),
      ),
      call('renew', `with checkpoints, by a ${worker}`, ({ request }) =>
        request.renew(generation, worker, LEASE_MS, ['0:checkpoint', '0', '1:checkpoint', '1']),
      ),
      ...[true, false].map((dead) =>
        call('cause', `of a ${worker}, dead: ${dead}`, ({ request }) =>
          request.cause(generation, worker, { signal: 'SIGKILL' }, dead),
        ),
      ),
      call('run-alone', `by a ${worker}`, ({ request }) =>
        request.runAlone(generation, worker, 1, [`${generation}-0`]),
      ),
    ]),
    ...[0, 5_000].flatMap((ms) => [
      call('hold', `for ${ms} ms`, (scene) => holds(scene).hold(generation, ms)),
      call('hold', `for ${ms} ms, without room`, (scene) =>
        holds(scene).hold(generation, ms, 'memory'),
      ),
    ]),
    ...[REDRIVER, 'another'].flatMap((owner) => [
      call('redrive', `by ${owner}`, (scene) =>
        redriveOf(scene).open(generation, owner, REDRIVE_LEASE_MS),
      ),
      call('redrive', `of one, by ${owner}`, (scene) =>
        redriveOf(scene).open(generation, owner, REDRIVE_LEASE_MS, [0]),
      ),
      call('run-again', `by ${owner}`, (scene) =>
        redriveOf(scene).runAgain(generation, owner, [0, 1, 99]),
      ),
    ]),
    ...Object.entries({
      'a lower limit': { limit: 1 },
      'a higher limit': { limit: 50 },
      'another priority': { priority: 3 },
      'a pause': { paused: true },
      'no pause': { paused: false },
      all: { limit: 2, priority: 70, toleratedFailures: '1', paused: false },
    }).map(([what, changes]) =>
      call('update', what, ({ connection, id }) =>
        new ControlCommands(connection, id).update(generation, changes),
      ),
    ),
    call('cancel', '', ({ request }) => request.cancel(generation)),
    call('tend', '', ({ request }) => request.tend(generation, '')),
    call('tend', 'the epoch before has passed', ({ request }) =>
      request.tend(generation, epochBefore),
    ),
    call('tend', 'of a tick that is long ago', ({ request }) =>
      request.tend(generation, '', 0, 15_000, 1),
    ),
    call('drop', '', ({ request }) => request.drop(generation)),
    ...['succeeded', 'dropped', 'gone'].map((outcome) =>
      call('finish', outcome, ({ queue, id }) => queue.finish(id, generation, outcome)),
    ),
    call('finish', 'of what keeps much', ({ queue, id }) =>
      queue.finish(id, generation, 'succeeded', 9_000_000_000_000),
    ),
    call('unlink-spent', '', ({ request }) => request.unlinkSpent(generation)),
    ...[0, 5].map((time) =>
      call('schedule-tend', String(time), ({ queue, id }) =>
        queue.scheduleTend(id, generation, time),
      ),
    ),
    call('park', '', ({ queue, id }) => queue.park(id, generation, 'census')),
    call('reopen', '', ({ queue, id }) => queue.reopen(id, generation)),
    call('push', 'of nothing', ({ queue, id }) =>
      queue.push({ id, generation, mint: 0, epoch: 1, priority: 50 }),
    ),
    call('push', 'of one', ({ queue, id }) =>
      queue.push({ id, generation, mint: 1, epoch: 1, priority: 50 }),
    ),
    call('exchange', 'of one', ({ queue, id }) =>
      queue.exchange({ id, generation, mint: 1, epoch: 1, priority: 50 }, 1),
    ),
  ];
}

/** All calls for a request as it is now; whatever they need to know of it is looked up here. */
export async function callsFor(scene: Scene): Promise<Call[]> {
  const { epoch, outBefore } = await peek(scene);
  // Only an epoch whose tokens are out can be said to have passed.
  const before = outBefore > 0 ? String(epoch - 1) : '';
  const { agenda } = await peekQueue(scene, []);
  const claims = { 'a claim that stands': agenda[scene.id] ?? 1, 'an old claim': 1 };
  const calls: Call[] = [
    { script: 'intent', name: '', send: ({ queue, id }) => queue.intent(id) },
    {
      script: 'intent',
      name: 'above the life that is known',
      send: ({ queue, id, generation }) => queue.intent(id, generation),
    },
    // In a cluster the two sides of a scene are apart.
    ...(againstCluster ? [] : [{}, { delayMs: 5_000 }, { expedite: true }]).map(
      (options, i): Call => ({
        script: 'submit',
        name: `number ${i}`,
        send: (scene) => submitWhole(scene, options),
      }),
    ),
    { script: 'inspect', name: '', send: ({ request }) => request.inspect() },
    {
      script: 'follow',
      name: '',
      send: ({ connection, id, generation }) =>
        new ReaderCommands(connection, id).follow(generation),
    },
    { script: 'read-series', name: '', send: ({ queue }) => queue.series(9) },
    { script: 'read-state', name: '', send: ({ request }) => request.fields('status', 'total') },
    ...['', ...WORKERS].map(
      (worker): Call => ({
        script: 'pending',
        name: `of ${worker || 'all'}`,
        send: ({ connection, request }) =>
          run(connection.client, 'pending', request.keys, {
            ...{ worker, from: 0, count: 9, leastMs: 0 },
          }),
      }),
    ),
    { script: 'read-results', name: '', send: ({ request }) => request.results('-', 9) },
    { script: 'should-yield', name: '', send: ({ queue }) => queue.shouldYield('another', 50) },
    ...[0, 60_000].map(
      (forMs): Call => ({
        script: 'pause-queue',
        name: `for ${forMs}`,
        send: ({ connection, queue }) =>
          new QueueControlCommands(connection, queue.keys.queue).pause(forMs),
      }),
    ),
    {
      script: 'resume-queue',
      name: '',
      send: ({ connection, queue }) =>
        new QueueControlCommands(connection, queue.keys.queue).resume(),
    },
    { script: 'deregister', name: '', send: ({ queue }) => queue.deregister('worker') },
    ...timedCalls,
    ...['worker', ''].map(
      (worker): Call => ({
        script: 'tick',
        name: `by '${worker}'`,
        send: ({ queue }) => queue.tick(worker, '{}'),
      }),
    ),
  ];
  const ages = { right: 0, older: -1, newer: 1 };
  for (const [age, more] of Object.entries(ages)) {
    const generation = scene.generation + more;
    const named = ofRequest(generation, before).filter(
      // Of a life that is not this one, what differs otherwise is answered alike: one of each will do.
      ({ script }, i, all) =>
        more === 0 ||
        /create|tend|finish|note/.test(script) ||
        all.findIndex((one) => one.script === script) === i,
    );
    calls.push(...named.map((one) => ({ ...one, name: `${one.name} (${age} generation)` })));
    for (const [which, claim] of Object.entries(claims)) {
      for (const mint of more === 0 ? [0, 1] : [1]) {
        for (const still of ['', String(Math.max(1, epoch - 1))]) {
          const tended = { mint, epoch, priority: 50, before: still, next: 0, parked: '' };
          calls.push({
            script: 'write-back',
            name: `mint ${mint}, before '${still}', ${which} (${age} generation)`,
            send: ({ queue, id }) => queue.writeBack({ id, generation, passed: '', claim }, tended),
          });
        }
      }
    }
  }
  return calls;
}
