// `kill -9` of a random worker process that runs something, every 300 ms, until a big request is through (later
// when fewer than three of the fleet are up, or none runs anything: a loaded machine starts them more slowly). It
// is bigger than was asked for when it would be through before `--kills` of them. Then: each index has one result,
// the counts are exact, and after the drop nothing is left. Says how many sub-requests ran again for each kill,
// and how long what a killed worker ran had to wait for its restart.
//
//   node test/crash/kill-storm.mjs                        40,000 sub-requests, on a Redis of its own
//   node test/crash/kill-storm.mjs --size 4000 --seed 7   fewer; the seed picks the victims
//   … --kills 4                                           at least so many; 0 by default
//   … --redis redis://127.0.0.1:7000 --json               a given server; one line of JSON at the end
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startRedis } from '@piecework/embedded';
import { Producer, requestOptions } from '@piecework/producer';
import { Connection, QueueCommands, TIMES } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import { Cluster } from 'ioredis';
import { Dice } from '../../tools/chaos/dist/contract/dice.js';

const { values } = parseArgs({
  options: {
    size: { type: 'string', default: '40000' },
    seed: { type: 'string', default: '1' },
    workers: { type: 'string', default: '6' },
    'every-ms': { type: 'string', default: '300' },
    kills: { type: 'string', default: '0' },
    redis: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
let size = Number(values.size);
const everyMs = Number(values['every-ms']);
/** Until there were kills enough, so many are there at most: else all might be done before the first. */
const WINDOW = 1_000;
const LEASE_MS = 1_000;
/** A tick of the agenda comes at most so late: its pace is a second, and a quarter of it is dice. */
const TICK_MS = 1_250;
const PROGRAM = fileURLToPath(new URL('../support/programs/worker.mjs', import.meta.url));
const dice = new Dice(Number(values.seed));
const queue = `storm-${process.pid}`;
const id = `${queue}.request`;

/** The fleet: a worker that is killed is replaced at once, and may be killed when it is ready. */
class Fleet {
  workers = [];
  #redis;
  #folder;
  #ready = new Set();

  constructor(redis, folder) {
    this.#redis = redis;
    this.#folder = folder;
  }

  start() {
    const log = join(this.#folder, `log-${this.workers.length}`);
    writeFileSync(log, '');
    const options = { redis: this.#redis, queue, concurrency: 20, leaseMs: LEASE_MS };
    const argument = JSON.stringify({ options, handle: { minMs: 20, maxMs: 40 }, log });
    const stdio = ['ignore', 'pipe', 'inherit'];
    const child = spawn(process.execPath, [PROGRAM, argument], { stdio });
    const worker = { child, log, ended: once(child, 'exit'), killedAt: undefined };
    this.workers.push(worker);
    child.stdout.once('data', () => this.#ready.add(worker));
  }

  /** Kills one of those that run something; false when none does, or when too few are ready. */
  kill() {
    if (this.#ready.size < 3) return false;
    const busy = [...this.#ready].filter(isBusy);
    const victim = busy[Math.floor(dice.next() * busy.length)];
    if (!victim) return false;
    this.#ready.delete(victim);
    victim.killedAt = process.hrtime.bigint();
    victim.child.kill('SIGKILL');
    this.start();
    return true;
  }

  async stop(signal) {
    for (const { child } of this.workers) child.kill(signal);
    await Promise.all(this.workers.map(({ ended }) => ended));
  }
}

function isBusy({ log }) {
  const running = new Set();
  for (const line of readFileSync(log, 'utf8').split('\n')) {
    const [what, , index] = line.split(' ');
    if (what === 'start') running.add(index);
    if (what === 'end') running.delete(index);
  }
  return running.size > 0;
}

/** Every execution that was begun: index → those of it, in the order of their start. */
function executions(workers) {
  const runs = new Map();
  for (const { log, killedAt } of workers) {
    for (const line of readFileSync(log, 'utf8').split('\n')) {
      const [what, , index, ns] = line.split(' ');
      if (what !== 'start') continue;
      const all = runs.get(index) ?? [];
      all.push({ at: BigInt(ns), killedAt });
      runs.set(index, all);
    }
  }
  for (const all of runs.values()) all.sort((a, b) => (a.at < b.at ? -1 : 1));
  return runs;
}

/** From the kill of the worker that ran it to the next start of the same sub-request, in ms. */
function waits(runs) {
  const found = [];
  for (const all of runs.values()) {
    for (const [i, { killedAt }] of all.entries()) {
      const next = all[i + 1];
      // Started elsewhere before the kill: its lease had been lost before.
      if (!next || killedAt === undefined || next.at < killedAt) continue;
      found.push(Number(next.at - killedAt) / 1e6);
    }
  }
  return found.sort((a, b) => a - b);
}

function check(condition, what) {
  if (!condition) throw new Error(`not so: ${what}`);
}

async function checkResults(commands) {
  const state = await commands.state();
  const counts = { total: size, succeeded: size, failed: 0, cancelled: 0 };
  for (const [name, n] of Object.entries(counts)) {
    check(Number(state[name]) === n, `${name} is ${n}, and not ${state[name]}`);
  }
  const seen = new Set();
  for (let from = '-'; ; ) {
    const entries = await commands.results(from, 1_000);
    for (const { records } of entries) {
      for (const { index, failed, value } of records) {
        check(!seen.has(index), `index ${index} has one result`);
        check(!failed && JSON.parse(value) === index, `the result of ${index} is right`);
        seen.add(index);
      }
    }
    const last = entries.at(-1);
    if (!last) break;
    from = `(${last.position}`;
  }
  check(seen.size === size, `each of ${size} has a result, and not ${seen.size}`);
}

async function nothingLeft(connection) {
  const { client } = connection;
  const servers = client instanceof Cluster ? client.nodes('master') : [client];
  const left = [];
  for (const server of servers) {
    for await (const keys of server.scanStream({ match: `*${queue}*`, count: 1_000 })) {
      for (const key of keys) {
        const tombstone =
          key === `request:{${id}}` && (await client.hget(key, 'status')) === 'dropped';
        if (!tombstone) left.push(key);
      }
    }
  }
  check(left.length === 0, `nothing is left, and not ${left.join(' ')}`);
}

const started = performance.now();
const own = values.redis ? undefined : await startRedis();
const redis = values.redis ?? own.url;
const folder = mkdtempSync(join(tmpdir(), 'piecework-storm-'));
const connection = Connection.open(redis);
const queueCommands = new QueueCommands(connection, queue);
const commands = new RequestCommands(connection, id);
const fleet = new Fleet(redis, folder);
try {
  for (let i = 0; i < Number(values.workers); i += 1) fleet.start();
  const producer = new Producer({ redis, queue });
  // Here every worker is killed, whatever it runs: no sub-request is to blame for it.
  const patient = Object.hasOwn(requestOptions, 'maxCrashes') ? { maxCrashes: 1_000 } : {};
  let kills = 0;
  const stormy = () => kills >= Number(values.kills);
  function* items() {
    for (let i = 0; i < size || !stormy(); i += 1) yield i;
  }
  const window = stormy() ? {} : { window: WINDOW };
  const submitting = producer.submit(items(), { id, limit: 100, ...window, ...patient });
  // The agenda has its first tend 20 s after the intent, which is later than these leases end.
  const scheduled = submitting.then(({ generation }) =>
    queueCommands.scheduleTend(id, generation, 0),
  );

  const open = async () => (await commands.state())?.status !== 'complete';
  while (await open()) {
    await sleep(everyMs);
    if (fleet.kill()) kills += 1;
  }
  await scheduled;
  size = (await submitting).total;
  await producer.close();
  await checkResults(commands);
  await fleet.stop('SIGTERM');

  const { generation } = await commands.state();
  await queueCommands.finish(id, generation, 'succeeded');
  const dropped = await commands.drop();
  await queueCommands.finish(id, dropped.generation, 'dropped');
  // The killed cannot strike themselves out; the registry would forget them a minute later.
  for (const worker of await queueCommands.workers()) await queueCommands.deregister(worker.id);
  await nothingLeft(connection);

  const runs = executions(fleet.workers);
  const again = [...runs.values()].reduce((sum, all) => sum + all.length, 0) - size;
  const waited = waits(runs);
  const at = (part) => Math.round(waited[Math.floor((waited.length - 1) * part)] ?? 0);
  const figures = {
    ...{ size, seed: Number(values.seed), workers: Number(values.workers), kills },
    seconds: Math.round((performance.now() - started) / 1_000),
    executedAgain: again,
    againPerKill: Number((again / Math.max(1, kills)).toFixed(2)),
    ...{ orphans: waited.length, restartP50Ms: at(0.5), restartMaxMs: at(1) },
    // The lease; the next tend; its tick.
    restartFormulaMs: LEASE_MS + Math.max(LEASE_MS, TIMES.graceMs) + TICK_MS,
  };
  if (values.json) console.log(JSON.stringify(figures));
  else {
    console.log(figures);
    console.log('each index has one result, the counts are exact, nothing is left after the drop');
    console.log(
      'From a kill to the restart of what it orphaned, if nothing else dies: the rest of the lease (1,000 ms);\n' +
        'the next tend (where the first lease ends, 1,000 ms, or 5,000 ms after the tokens were popped when\n' +
        'nobody had a permit at the tend before); its tick (1,250 ms); the next settle of any worker.\n' +
        'When the killed one was just tending: its claim (8,000 ms). When it had popped a token: a tend, the\n' +
        'grace (5,000 ms) and another tend until the token is replaced.',
    );
  }
} finally {
  await fleet.stop('SIGKILL');
  await connection.close();
  await own?.close();
  rmSync(folder, { recursive: true, force: true });
}
