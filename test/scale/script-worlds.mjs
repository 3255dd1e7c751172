// Large worlds, and the one call that is measured in each. script-time.mjs goes through them; a test takes two
// sizes of some. A world is filled by the calls of the protocol, or, where that would take minutes, by plain
// commands that leave the same.
import {
  Connection,
  FailureCommands,
  QueueCommands,
  RedriveCommands,
  TimedCommands,
} from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';

const LEASE_MS = 3_600_000;
const CHUNK = 500;

/** What a world is built with: one connection, one queue, any number of requests. */
class Builder {
  requests = 0;

  constructor(connection) {
    this.connection = connection;
    this.client = connection.client;
    this.queue = new QueueCommands(connection, 'q');
  }

  /** Commands in pipelines. */
  async send(commands) {
    let some = [];
    const flush = async () => {
      for (const [error] of await this.client.pipeline(some).exec()) if (error) throw error;
      some = [];
    };
    for (const command of commands) {
      some.push(command);
      if (some.length === 2_000) await flush();
    }
    if (some.length > 0) await flush();
  }

  /** An open or sealed request of `n` sub-requests. */
  async request(n, { payload = 'x', seal = true, limit = 1_000_000, ...more } = {}) {
    this.requests += 1;
    const id = `r${this.requests}`;
    const request = new RequestCommands(this.connection, id);
    const generation = await this.queue.intent(id);
    const fields = {
      ...{ queue: 'q', priority: 50, limit, task: '', attempts: 1, maxCrashes: 3, window: 0 },
      ...{ results: 'keep', retentionMs: 86_400_000, toleratedFailures: '100%', digest: 'd' },
      ...{ onProducerLost: 'seal', metadata: '', ...more },
    };
    await request.create({
      ...{ generation, owner: 'owner', leaseMs: LEASE_MS },
      options: JSON.stringify(Object.entries(fields).flat().map(String)),
    });
    const chunk = Math.max(1, Math.min(CHUNK, Math.floor(4_194_304 / payload.length)));
    for (let i = 0; i < n; i += chunk)
      await request.append(generation, 'p', i, Array(Math.min(chunk, n - i)).fill(payload));
    if (seal) await request.seal(generation, 'p', n);
    return { id, request, generation };
  }

  async enter({ request, generation }, worker, n, op = 1, leaseMs = LEASE_MS) {
    return request.enter({ generation, worker, op, want: n, leaseMs, tasks: '*', epochs: [] });
  }

  /** `worker` enters for `n` and gives all of it back. */
  async giveBack(scene, worker, n) {
    const { request, generation } = scene;
    let op = 1;
    await this.enter(scene, worker, Math.min(n, CHUNK), op);
    for (let i = 0; i < n; i += CHUNK) {
      const entries = await request.read(worker, Math.min(CHUNK, n - i));
      op += 1;
      const numbers = { op, leaseMs: LEASE_MS, keep: CHUNK, running: 0, read: 0 };
      await request.settle(
        generation,
        worker,
        numbers,
        entries.map(({ entry }) => ({ entry, kind: 'b' })),
      );
    }
  }
}

const names = (n, what) => Array.from({ length: n }, (_, i) => `${what}${i}`);
const MEBI = 'x'.repeat(1_048_576);

/**
 * `build` answers what is measured: a function that makes the call. `tries` of it, of which the least counts;
 * `expire`: the command measured is what makes a key expire.
 */
export const worlds = [
  {
    name: 'tick, parked requests of other tasks',
    full: 200_000,
    tries: 3,
    async build(b, n) {
      await b.send(names(n, 'p').flatMap((id) => [['hset', b.queue.keys.open, id, 1]]));
      for (const some of chunks(names(n, 'p'), 1_000))
        await Promise.all(some.map((id) => b.queue.park(id, 1, 'other')));
      await b.client.del(b.queue.keys.agenda);
      return () => b.queue.tick('w', '{}', ' mine ');
    },
  },
  {
    name: 'tick, parked requests that it serves',
    full: 200_000,
    tries: 3,
    async build(b, n) {
      await b.send(names(n, 'p').flatMap((id) => [['hset', b.queue.keys.open, id, 1]]));
      for (const some of chunks(names(n, 'p'), 1_000))
        await Promise.all(some.map((id) => b.queue.park(id, 1, 'mine')));
      await b.client.del(b.queue.keys.agenda);
      return () => b.queue.tick('w', '{}', ' mine ');
    },
  },
  {
    name: 'tick, parked by workers before this release',
    full: 200_000,
    tries: 3,
    async build(b, n) {
      await b.send(names(n, 'p').map((id) => ['hset', b.queue.keys.parked, id, '1 other']));
      return () => b.queue.tick('w', '{}', ' mine ');
    },
  },
  {
    name: 'tick, all tokens popped, 100 priorities',
    full: 50_000,
    async build(b, n) {
      const { wait, marks, open, pushed } = b.queue.keys;
      const ids = names(n, 'p');
      await b.send(
        ids.flatMap((id, i) => [
          ['zadd', wait, (i % 100) * 2 ** 44 + 1, id],
          ['hset', marks, id, '1'],
          ['hset', open, id, 1],
        ]),
      );
      await b.send(names(100, '').map((priority) => ['hset', pushed, priority, 1]));
      return () => b.queue.tick('w', '{}');
    },
  },
  {
    name: 'tick, workers long dead',
    full: 10_000,
    async build(b, n) {
      const { workers, workerInfo } = b.queue.keys;
      await b.send(
        names(n, 'dead').flatMap((id) => [
          ['zadd', workers, 1, id],
          ['hset', workerInfo, id, '{"tasks":"*","pid":1,"host":"a","startedAt":1}'],
        ]),
      );
      return () => b.queue.tick('w', '{}');
    },
  },
  {
    name: 'tick, the first report in an interval, of so many workers',
    full: 10_000,
    async build(b, n) {
      const { workers, workerInfo } = b.queue.keys;
      const now = Date.now();
      const info = (done) =>
        `{"figures":"3 10 ${done} 0 0 0 0 0 0 0","tasks":"*","more":"${'x'.repeat(500)}"}`;
      await b.queue.tick('w', info(1));
      await b.send(
        names(n, 'alive').flatMap((id) => [
          ['zadd', workers, now, id],
          ['hset', workerInfo, id, info(1)],
        ]),
      );
      await b.client.del(b.queue.keys.series);
      return () => b.queue.tick('w', info(9));
    },
  },
  {
    name: 'tend, workers with 100 each died',
    full: 500,
    async build(b, n) {
      const scene = await b.request(100 * n);
      for (const worker of names(n, 'w')) {
        await b.enter(scene, worker, 100, 1, 1);
        await scene.request.read(worker, 100);
      }
      return () => scene.request.tend(scene.generation, '');
    },
  },
  {
    name: 'tend, workers that hold it',
    full: 10_000,
    tries: 3,
    async build(b, n) {
      const scene = await b.request(n);
      for (const some of chunks(names(n, 'w'), 500))
        await Promise.all(
          some.map(async (worker) => {
            await b.enter(scene, worker, 1);
            await scene.request.read(worker, 1);
          }),
        );
      return () => scene.request.tend(scene.generation, '');
    },
  },
  {
    name: 'take, 1 MiB each',
    full: 500,
    async build(b, n) {
      const scene = await b.request(n, { payload: MEBI });
      // By claims: read by hand they would all travel.
      await b.client.eval(
        `for i = 0, ARGV[2] - 1 do
           local id = ARGV[1] .. '-' .. i
           redis.call('XREADGROUP', 'GROUP', 'workers', '~', 'COUNT', 1, 'STREAMS', KEYS[1], '>')
           redis.call('ZADD', KEYS[2], 0, id)
         end`,
        ...[2, scene.request.keys.work, scene.request.keys.due, scene.generation, n],
      );
      await b.enter(scene, 'w', n);
      return () => scene.request.take(scene.generation, 'w', 2, n);
    },
  },
  {
    name: 'take, small',
    full: 5_000,
    async build(b, n) {
      const scene = await b.request(n);
      await b.giveBack(scene, 'before', n);
      await b.enter(scene, 'w', n);
      return () => scene.request.take(scene.generation, 'w', 2, n);
    },
  },
  {
    name: 'enter, 1 MiB each',
    full: 16,
    async build(b, n) {
      const scene = await b.request(n, { payload: MEBI });
      return () =>
        scene.request.enter({
          generation: scene.generation,
          worker: 'w',
          op: 1,
          want: n,
          leaseMs: LEASE_MS,
          tasks: '*',
          epochs: [],
          most: 16,
        });
    },
  },
  {
    name: 'settle, reads 1 MiB each',
    full: 200,
    async build(b, n) {
      const scene = await b.request(n, { payload: MEBI });
      await b.enter(scene, 'w', n);
      const numbers = { op: 2, leaseMs: LEASE_MS, keep: n, running: 0, read: n };
      return () => scene.request.settle(scene.generation, 'w', numbers, []);
    },
  },
  {
    name: 'settle, reads small',
    full: 1_000,
    async build(b, n) {
      const scene = await b.request(n);
      await b.enter(scene, 'w', n);
      const numbers = { op: 2, leaseMs: LEASE_MS, keep: n, running: 0, read: n };
      return () => scene.request.settle(scene.generation, 'w', numbers, []);
    },
  },
  {
    name: 'settle, successes',
    full: 500,
    async build(b, n) {
      const scene = await b.request(n + 1);
      const { since } = await b.enter(scene, 'w', n);
      const entries = await scene.request.read('w', n);
      const numbers = { op: 2, since, leaseMs: LEASE_MS, keep: n, running: 0, read: 0 };
      const outcomes = entries.map(({ entry }) => ({ entry, kind: 's', value: '"done"' }));
      return () => scene.request.settle(scene.generation, 'w', numbers, outcomes);
    },
  },
  {
    // As many as a worker settles at once.
    name: 'settle, failures of 1 KiB',
    full: 166,
    async build(b, n) {
      const scene = await b.request(n + 1, { payload: 'x'.repeat(1_024) });
      const { since } = await b.enter(scene, 'w', n);
      const entries = await scene.request.read('w', n);
      const numbers = { op: 2, since, leaseMs: LEASE_MS, keep: n, running: 0, read: 0 };
      const value = '{"name":"Error","message":"no"}';
      const outcomes = entries.map(({ entry }) => ({ entry, kind: 'f', value, delayMs: -1 }));
      return () => scene.request.settle(scene.generation, 'w', numbers, outcomes);
    },
  },
  {
    name: 'settle, beside a straggler',
    full: 500_000,
    async build(b, n) {
      const scene = await b.request(n);
      let op = 1;
      const { since } = await b.enter(scene, 'w', CHUNK, op);
      await scene.request.read('w', 1);
      let outcomes = [];
      const settle = () => {
        op += 1;
        const numbers = { op, since, leaseMs: LEASE_MS, keep: CHUNK, running: 1, read: 0 };
        return scene.request.settle(scene.generation, 'w', numbers, outcomes);
      };
      for (let i = 1; i < n; i += CHUNK) {
        const entries = await scene.request.read('w', Math.min(CHUNK, n - i));
        outcomes = entries.map(({ entry }) => ({ entry, kind: 's', value: '1' }));
        if (i + CHUNK < n) await settle();
      }
      return settle;
    },
  },
  {
    // As much as a producer appends at once.
    name: 'append, 8 KiB each',
    full: 125,
    async build(b, n) {
      const scene = await b.request(1, { seal: false });
      const payloads = Array(n).fill('x'.repeat(8_192));
      return () => scene.request.append(scene.generation, 'p', 1, payloads);
    },
  },
  {
    name: 'renew, checkpoints',
    full: 1_000,
    async build(b, n) {
      const scene = await b.request(n);
      await b.enter(scene, 'w', n);
      await scene.request.read('w', n);
      const reports = names(n, '').flatMap((i) => [`${i}:checkpoint`, '{"at":1}']);
      return () => scene.request.renew(scene.generation, 'w', LEASE_MS, reports);
    },
  },
  {
    name: 'run-again, 1 KiB each',
    full: 500,
    async build(b, n) {
      const scene = await b.request(n, { payload: 'x'.repeat(1_024) });
      await failAll(b, scene, n);
      const { redrive, generation } = await nextLife(b, scene);
      await redrive.open(generation, 'me', LEASE_MS);
      return () => redrive.runAgain(generation, 'me', names(n, '').map(Number));
    },
  },
  {
    name: 'redrive, held by workers before',
    full: 10_000,
    async build(b, n) {
      const scene = await b.request(1);
      await leaveFields(b, scene, n);
      await failAll(b, scene, 1);
      const { redrive, generation } = await nextLife(b, scene);
      return () => redrive.open(generation, 'me', LEASE_MS);
    },
  },
  {
    name: 'cancel, queued',
    full: 1_000_000,
    async build(b, n) {
      const scene = await b.request(n);
      return () => scene.request.cancel(scene.generation);
    },
  },
  {
    name: 'cancel, queued, short retention',
    full: 1_000_000,
    async build(b, n) {
      const scene = await b.request(n, { retentionMs: 30_000, payload: 'x'.repeat(100) });
      return () => scene.request.cancel(scene.generation);
    },
  },
  {
    name: 'cancel, given back',
    full: 50_000,
    async build(b, n) {
      const scene = await b.request(n);
      await b.giveBack(scene, 'w', n);
      return () => scene.request.cancel(scene.generation);
    },
  },
  {
    name: 'drop, held by workers',
    full: 10_000,
    async build(b, n) {
      const scene = await b.request(1);
      await leaveFields(b, scene, n);
      return () => scene.request.drop(scene.generation);
    },
  },
  {
    name: 'inspect, held by workers',
    full: 10_000,
    tries: 3,
    async build(b, n) {
      const scene = await b.request(1);
      await leaveFields(b, scene, n);
      await b.send(names(n, '').map((i) => ['hset', scene.request.keys.progress, i, '0.5']));
      return () => scene.request.inspect(['status', 'generation']);
    },
  },
  {
    name: 'unlink-spent, failures',
    full: 300_000,
    async build(b, n) {
      const scene = await b.request(n);
      await failAll(b, scene, n);
      await b.client.hset(scene.request.keys.request, 'spentAt', 1);
      return () => scene.request.unlinkSpent(scene.generation);
    },
  },
  {
    name: 'read-results, 1 MiB each',
    full: 32,
    async build(b, n) {
      const scene = await b.request(n + 1);
      let op = 1;
      const { since } = await b.enter(scene, 'w', n, op);
      for (const entry of await scene.request.read('w', n)) {
        op += 1;
        const numbers = { op, since, leaseMs: LEASE_MS, keep: n, running: 0, read: 0 };
        const outcomes = [{ entry: entry.entry, kind: 's', value: MEBI }];
        await scene.request.settle(scene.generation, 'w', numbers, outcomes);
      }
      return () => scene.request.results('-', 1_000);
    },
  },
  {
    name: 'expiry of failures',
    full: 300_000,
    expiry: true,
    async build(b, n) {
      const scene = await b.request(n, { retentionMs: 5_000 });
      await failAll(b, scene, n);
      return { key: scene.request.keys.failed };
    },
  },
  {
    name: 'expiry of results',
    full: 300_000,
    expiry: true,
    async build(b, n) {
      const scene = await b.request(0, { retentionMs: 5_000 });
      const { results } = scene.request.keys;
      await b.send(
        names(n, '').map((i) => ['xadd', results, `1-${Number(i) + 1}`, 'ok', 'x'.repeat(100)]),
      );
      return { key: results };
    },
  },
  {
    name: 'expiry of large results',
    full: 500,
    expiry: true,
    async build(b, n) {
      const scene = await b.request(0, { retentionMs: 5_000 });
      const { results } = scene.request.keys;
      for (const i of names(n, '')) await b.client.xadd(results, `1-${Number(i) + 1}`, 'ok', MEBI);
      return { key: results };
    },
  },
  {
    name: 'finish, the last one, tokens in the lists',
    full: 500_000,
    async build(b, n) {
      const scene = await b.request(1);
      const { list, pushed } = b.queue.keys;
      await b.send(chunks(names(n, 'gone'), 100).map((some) => ['lpush', list(5), ...some]));
      await b.send([['hset', pushed, 5, n]]);
      return () => b.queue.finish(scene.id, scene.generation, 'succeeded');
    },
  },
  {
    name: 'push, into the middle of a lane',
    full: 500_000,
    async build(b, n) {
      const scene = await b.request(1);
      const lane = b.queue.keys.lane(50);
      const tokens = names(n, '').map((i) => `other${i}~1~1~${1_000_000 + Number(i)}`);
      await b.send(chunks(tokens, 100).map((some) => ['lpush', lane, ...some]));
      await b.queue.learnLanes();
      const minted = { ...scene, mint: 1, epoch: 1, priority: 50, due: 1_000_000 + n / 2 };
      return () => b.queue.push(minted);
    },
  },
  {
    name: 'push of 32, into the middle of a lane',
    full: 500_000,
    async build(b, n) {
      const scene = await b.request(1);
      const lane = b.queue.keys.lane(50);
      const tokens = names(n, '').map((i) => `other${i}~1~1~${1_000_000 + Number(i)}`);
      await b.send(chunks(tokens, 100).map((some) => ['lpush', lane, ...some]));
      const minted = { ...scene, mint: 32, epoch: 1, priority: 50, due: 1_000_000 + n / 2 };
      return () => b.queue.push(minted);
    },
  },
  {
    name: 'counts of a timed set, all leased',
    full: 200_000,
    tries: 3,
    async build(b, n) {
      const timed = new TimedCommands(b.connection, 'retry', 'timed');
      await fillTimed(timed, n);
      for (let i = 0; i < n; i += CHUNK) await timed.take('t', i / CHUNK + 1, CHUNK, LEASE_MS);
      return () => timed.counts();
    },
  },
  {
    name: 'timed-take, 1 MiB each',
    full: 200,
    async build(b, n) {
      const timed = new TimedCommands(b.connection, 'retry', 'timed');
      for (const key of names(n, 'k'))
        await timed.put('c', Number(key.slice(1)) + 1, [
          { key, token: '', time: 0, payload: MEBI },
        ]);
      return () => timed.take('t', 1, n, LEASE_MS);
    },
  },
  {
    name: 'timed-take, 500 of',
    full: 200_000,
    async build(b, n) {
      const timed = new TimedCommands(b.connection, 'retry', 'timed');
      await fillTimed(timed, n);
      return () => timed.take('t', 1, CHUNK, LEASE_MS);
    },
  },
  {
    name: 'a read of failures',
    full: 300_000,
    async build(b, n) {
      const scene = await b.request(n);
      await failAll(b, scene, n);
      const failures = new FailureCommands(b.connection, scene.id);
      return () => failures.scan('0');
    },
  },
];

const chunks = (all, n) =>
  Array.from({ length: Math.ceil(all.length / n) }, (_, i) => all.slice(i * n, (i + 1) * n));

async function failAll(b, scene, n) {
  const { request, generation } = scene;
  let op = 1;
  const { since } = await b.enter(scene, 'f', CHUNK, op);
  for (let i = 0; i < n; i += CHUNK) {
    const entries = await request.read('f', Math.min(CHUNK, n - i));
    op += 1;
    const numbers = { op, since, leaseMs: LEASE_MS, keep: CHUNK, running: 0, read: 0 };
    const value = '{"name":"Error","message":"no"}';
    const outcomes = entries.map(({ entry }) => ({ entry, kind: 'f', value, delayMs: -1 }));
    await request.settle(generation, 'f', numbers, outcomes);
  }
}

/** What workers that once held it leave in the state. */
async function leaveFields(b, { request }, n) {
  await b.send(
    names(n, 'w').map((worker) => [
      ...['hset', request.keys.request, `permits:${worker}`, 1, `lease:${worker}`, 1],
      ...[`term:${worker}`, 1, `since:${worker}`, 1, `op:${worker}`, 1],
    ]),
  );
}

async function nextLife(b, { id, generation }) {
  await b.queue.finish(id, generation, 'failed');
  return { redrive: new RedriveCommands(b.connection, id), generation: await b.queue.intent(id) };
}

async function fillTimed(timed, n) {
  let number = 0;
  for (const some of chunks(names(n, 'k'), CHUNK)) {
    number += 1;
    await timed.put(
      'c',
      number,
      some.map((key) => ({ key, token: '', time: 1, payload: '1' })),
    );
  }
}

/** CPU time of the server's main thread so far. */
async function cpuUsec(client) {
  const cpu = await client.info('cpu');
  const of = (kind) => Number(new RegExp(`used_cpu_${kind}_main_thread:([\\d.]+)`).exec(cpu)?.[1]);
  return (of('user') + of('sys')) * 1_000_000;
}

/** `usec` of the longest kind of call since the last reset, on average, and how many commands there were. */
async function spent(client) {
  const stats = await client.info('commandstats');
  let usec = 0;
  let commands = 0;
  const each = /cmdstat_(\S+?):calls=(\d+),usec=\d+,usec_per_call=([\d.]+)/g;
  for (const [, name, calls, us] of stats.matchAll(each)) {
    if (/^(info|config)/.test(name)) continue;
    commands += Number(calls);
    // Of a script all that it calls counts with it.
    if (/^(evalsha|eval|hscan)$/.test(name)) usec = Math.max(usec, Number(us));
  }
  return { usec, commands };
}

/** Builds a world and measures its call. */
export async function measure(url, world, scale) {
  const size = Math.max(1, Math.round(world.full * scale));
  const connection = Connection.open(url);
  const { client } = connection;
  try {
    const builder = new Builder(connection);
    const call = await world.build(builder, size);
    if (world.expiry) return { ...(await expiry(client, call.key)), name: world.name, size };
    let best;
    for (let i = 0; i < (world.tries ?? 1); i += 1) {
      await client.config('RESETSTAT');
      const before = await cpuUsec(client);
      await call();
      const cpu = (await cpuUsec(client)) - before;
      const found = await spent(client);
      // On a busy machine the server is not always there while its clock goes on.
      found.usec = Math.min(found.usec, cpu);
      if (!best || found.usec < best.usec) best = found;
    }
    const { usec, commands } = best;
    return { name: world.name, size, ms: usec / 1_000, commands, detail: '' };
  } finally {
    await connection.close();
  }
}

/** How long the server stands still as a key expires: LATENCY's event of it, in ms. */
async function expiry(client, key) {
  await client.config('SET', 'latency-monitor-threshold', 1);
  await client.call('LATENCY', 'RESET');
  await client.pexpire(key, 200);
  const began = performance.now();
  while ((await client.exists(key)) === 1 && performance.now() - began < 10_000)
    await new Promise((resolve) => setTimeout(resolve, 20));
  const latest = await client.call('LATENCY', 'LATEST');
  const events = Object.fromEntries(latest.map(([event, , , most]) => [event, most]));
  const ms = Math.max(0, ...Object.values(events));
  return { ms, commands: 0, detail: JSON.stringify(events) };
}
