// What each master of a cluster does during a run of many requests: its share of the calls and of the CPU.
// The run is made twice: with all hash slots dealt out evenly, and with a master that has the queue's hash
// slot and no other, whose row is then what the queue side costs. Every request has to be complete and exact.
//
//   node test/scale/masters.mjs [--requests 1000] [--items 20] [--workers 3] [--concurrency 20] [--json]
//
// Calls are those that Redis counts, in scripts as well as by clients; what keeps a cluster and its connections
// going (PING, CLUSTER, REPLCONF …) is counted apart. CPU is that of the main thread.
//
// Exit code 1 when a server has seen a command across hash slots (CROSSSLOT in INFO errorstats), or a request is
// not complete and exact. `--cross` sends one such command, as a proof that it would be seen.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startCluster } from '@piecework/embedded';
import { Notifier } from '@piecework/notifier';
import { Producer } from '@piecework/producer';
import { Worker } from '@piecework/worker';
import Table from 'cli-table3';
import { Redis } from 'ioredis';
import pMap from 'p-map';

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '1000' },
    items: { type: 'string', default: '20' },
    workers: { type: 'string', default: '3' },
    concurrency: { type: 'string', default: '20' },
    cross: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const [requests, items, workers, concurrency] = [
  ...[values.requests, values.items, values.workers, values.concurrency],
].map(Number);
const MASTERS = 3;
const HASH_SLOTS = 16_384;
const QUEUE = 'masters';
/** How long the nodes may take to agree on a change, in ms. */
const AGREED_MS = 60_000;
const UPKEEP =
  /^(ping|cluster|replconf|psync|info|client|command|config|hello|auth|select|readonly|asking)(\||$)/;

const cluster = await startCluster({ password: '', masters: MASTERS });
const redis = { nodes: cluster.nodes.map(({ host, port }) => ({ host, port })) };
const servers = redis.nodes.map(({ host, port }) => new Redis({ host, port }));
const masters = servers.slice(0, MASTERS);
const queueSlot = await masters[0].cluster('KEYSLOT', `{${QUEUE}}`);
const home = Math.floor((queueSlot * MASTERS) / HASH_SLOTS);

const numbers = (count) => Array.from({ length: count }, (_, i) => i);
const sum = (all) => all.reduce((total, one) => total + one, 0);
const number = (info, name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1] ?? 0);

/** What a server has done so far. */
async function readings(client) {
  const info = await client.info('commandstats', 'cpu');
  const seen = { calls: 0, scripts: 0, upkeep: 0, cpuMs: 0 };
  for (const [, name, calls] of info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
    if (UPKEEP.test(name)) seen.upkeep += Number(calls);
    else seen.calls += Number(calls);
    if (/^eval(sha)?$/.test(name)) seen.scripts += Number(calls);
  }
  const kinds = ['user', 'sys'].map((kind) => `used_cpu_${kind}_main_thread`);
  seen.cpuMs = sum(kinds.map((kind) => number(info, kind))) * 1_000;
  return seen;
}

const requestKeys = async (client) => (await client.keys('request:*')).length;

/** Ids for a run, none of them in the queue's hash slot: what is there is to be the queue's alone. */
async function idsOf(run) {
  const ids = [];
  for (let n = 0; ids.length < requests; n += 1) {
    const id = `${run}-${n}`;
    if ((await masters[0].cluster('KEYSLOT', `{${id}}`)) !== queueSlot) ids.push(id);
  }
  return ids;
}

/** A run on its own queue objects; answers what each master did meanwhile. */
async function measured(run) {
  const ids = await idsOf(run);
  const runs = new Map();
  const handler = (n, { requestId, index }) => {
    const key = `${requestId} ${index}`;
    runs.set(key, (runs.get(key) ?? 0) + 1);
    return 2 * n;
  };
  const shared = { redis, queue: QUEUE };
  const fleet = numbers(workers).map(() => new Worker({ ...shared, concurrency, handler }));
  const producer = new Producer(shared);
  const notifier = new Notifier(shared);
  try {
    await Promise.all(fleet.map((worker) => worker.start()));
    const before = await Promise.all(masters.map(readings));
    const keysBefore = await Promise.all(masters.map(requestKeys));
    const begun = performance.now();
    const outcomes = await pMap(
      ids,
      async (id, n) => {
        await producer.submit(numbers(items), { id, priority: n % 3 });
        return { id, awaited: notifier.completion(id) };
      },
      { concurrency: 50 },
    ).then((all) => Promise.all(all.map(async ({ id, awaited }) => ({ id, ...(await awaited) }))));
    const seconds = (performance.now() - begun) / 1_000;
    const after = await Promise.all(masters.map(readings));
    const keysAfter = await Promise.all(masters.map(requestKeys));
    const rows = masters.map(({ options }, i) => ({
      master: `${options.host}:${options.port}`,
      queue: i === home,
      requests: keysAfter[i] - keysBefore[i],
      ...Object.fromEntries(Object.entries(after[i]).map(([k, v]) => [k, v - before[i][k]])),
    }));
    const wrong = await pMap(outcomes, (one) => whatIsWrong(one, notifier, runs), {
      concurrency: 50,
    });
    return { seconds, rows, wrong: wrong.filter((one) => one !== '') };
  } finally {
    await Promise.all([...fleet, producer, notifier].map((one) => one.close()));
  }
}

async function whatIsWrong({ id, status, counts }, notifier, runs) {
  if (status !== 'succeeded' || counts.total !== items || counts.succeeded !== items)
    return `${id} is ${status}: ${JSON.stringify(counts)}`;
  const seen = [];
  for await (const { index, value } of notifier.results(id, { order: 'index' })) {
    if (value !== 2 * index) return `${id} ${index} resulted in ${value}`;
    seen.push(index);
  }
  if (seen.join() !== numbers(items).join()) return `${id} has results of ${seen.join(' ')}`;
  const times = seen.map((index) => runs.get(`${id} ${index}`));
  return times.every((one) => one === 1) ? '' : `${id} ran ${times.join(' ')} times`;
}

/** Leaves the queue's master nothing but the queue's hash slot. Nothing may be stored there yet. */
async function setApart() {
  const others = masters.filter((_, i) => i !== home);
  const ids = await Promise.all(others.map((client) => client.cluster('MYID')));
  const [first, last] = [home, home + 1].map((i) => Math.floor((i * HASH_SLOTS) / MASTERS));
  const moves = numbers(last - first)
    .map((i) => first + i)
    .filter((slot) => slot !== queueSlot)
    // In whole halves: of many small ranges the map of slots, which all clients read, would be long.
    .map((slot) => ['cluster', 'setslot', slot, 'node', ids[slot < (first + last) / 2 ? 0 : 1]]);
  // Where two claim a slot, the greater epoch is believed, also by those who are not asked here.
  for (const client of others) await client.call('CLUSTER', 'BUMPEPOCH');
  for (const client of [masters[home], ...others]) {
    const replies = await client.pipeline(moves).exec();
    const refused = replies.find(([error]) => error);
    if (refused) throw refused[0];
  }
  const { port } = masters[home].options;
  for (const client of servers) {
    const endMs = performance.now() + AGREED_MS;
    const agrees = async () => {
      const ranges = await client.cluster('SLOTS');
      const [[first, last] = [], ...more] = ranges.filter(([, , [, at]]) => at === port);
      const whole = String(await client.cluster('INFO')).includes('cluster_state:ok');
      return whole && first === queueSlot && last === queueSlot && more.length === 0;
    };
    while (!(await agrees())) {
      if (performance.now() > endMs) throw new Error('the nodes do not agree on the hash slots');
      await sleep(25);
    }
  }
}

/** How often each error was answered by any server, by its first word. */
async function errors() {
  const counts = {};
  for (const client of servers) {
    const info = await client.info('errorstats');
    for (const [, name, count] of info.matchAll(/^errorstat_([^:]+):count=(\d+)/gm))
      counts[name] = (counts[name] ?? 0) + Number(count);
  }
  return counts;
}

function print(title, { seconds, rows }) {
  const columns = ['requests', 'scripts', 'calls', 'upkeep', 'cpuMs'];
  const head = ['', 'requests', 'scripts', 'calls', 'upkeep', 'CPU ms', 'calls %', 'CPU %'];
  const table = new Table({ head, style: { head: [], border: [], compact: true } });
  const share = (row, name) => ((100 * row[name]) / sum(rows.map((one) => one[name]))).toFixed(1);
  for (const row of rows) {
    const cells = columns.map((name) => Math.round(row[name]));
    table.push([
      `${row.master}${row.queue ? ' (queue)' : ''}`,
      ...cells,
      share(row, 'calls'),
      share(row, 'cpuMs'),
    ]);
  }
  console.log(`${title}: ${requests} requests of ${items} in ${seconds.toFixed(1)} s`);
  console.log(table.toString());
}

try {
  const even = await measured('even');
  for (const client of masters) await client.flushall();
  await setApart();
  const apart = await measured('apart');
  if (values.cross) await masters[home].mget('a', 'b', 'c').catch(() => {});
  const seen = await errors();
  if (values.json) console.log(JSON.stringify({ requests, items, even, apart, errors: seen }));
  else {
    print('Hash slots dealt out evenly', even);
    print('The queue’s hash slot on a master of its own', apart);
    console.log(`Errors answered by the six servers: ${JSON.stringify(seen)}`);
    for (const one of [...even.wrong, ...apart.wrong]) console.log(one);
  }
  const exact = even.wrong.length === 0 && apart.wrong.length === 0;
  process.exitCode = exact && !('CROSSSLOT' in seen) ? 0 : 1;
} finally {
  for (const client of servers) client.disconnect();
  await cluster.close();
}
