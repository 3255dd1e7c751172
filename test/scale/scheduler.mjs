// Many objects that are due one after the other, a few processes that take them, one of which is killed
// while it holds some.
//
//   node test/scale/scheduler.mjs [--objects 10000] [--seconds 60] [--takers 3] [--lock-ms 3000]
//     [--idle-seconds 20] [--json]
//
// By the server's clock: none may be taken before its time, none lost, none twice unless its taker was
// killed, or came too late to remove it, and each in its order. Printed: how late they were, as the server
// took them and as the taker had them, beside a process of its own that only sets a timer for each of the
// same times; and how many commands an idle taker sends. Exit code 1 when one of those rules was broken, or
// it was more than two a second.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startRedis } from '@piecework/embedded';
import { timedKeys } from '@piecework/protocol';
import { Scheduler } from '@piecework/queues';
import Table from 'cli-table3';
import { Redis } from 'ioredis';

const { values } = parseArgs({
  options: {
    objects: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '60' },
    takers: { type: 'string', default: '3' },
    'lock-ms': { type: 'string', default: '3000' },
    'idle-seconds': { type: 'string', default: '20' },
    json: { type: 'boolean', default: false },
  },
});
const [objects, seconds, takers, lockMs, idleSeconds] = [
  ...[values.objects, values.seconds, values.takers, values['lock-ms'], values['idle-seconds']],
].map(Number);
const NAME = 'scale';
const LEAD_MS = 2_000;
const IDLE_OBJECT = 'much later';
const HOUR_MS = 3_600_000;
const SETTLED_MS = 100;
const program = fileURLToPath(new URL('./scheduler-taker.mjs', import.meta.url));

const server = await startRedis({});
const folder = await mkdtemp(join(tmpdir(), 'piecework-scheduler-'));
const children = [];

async function start(name, argument) {
  const log = join(folder, name);
  const child = fork(program, [JSON.stringify({ ...argument, log })]);
  children.push(child);
  await once(child, 'message');
  return { child, log };
}

async function linesOf({ log }) {
  const text = await readFile(log, 'utf8');
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => line.split(' '));
}

/** All that the takers took; `answer`: what each was told when it removed it, and when. */
async function takesOf(all) {
  const takes = [];
  const answers = new Map();
  for (const [taker, one] of all.entries()) {
    for (const [what, object, ...words] of await linesOf(one)) {
      const key = `${taker} ${object}`;
      if (what === 'removed') {
        const [counted, at] = words;
        const answer = { counted: counted === 'true', at: Number(at) };
        answers.set(key, [...(answers.get(key) ?? []), answer]);
      } else if (what === 'taken') {
        const [at, server_, own] = words.map(Number);
        takes.push({ object, taker, at, server: server_, own });
      }
    }
  }
  // A taker is answered in the order in which it took.
  for (const one of takes) one.answer = answers.get(`${one.taker} ${one.object}`)?.shift();
  return takes;
}

/**
 * What the killed one had when it died, as the server has it: of its last take it may have had no time
 * to tell.
 */
async function heldBy({ log }, client) {
  const leases = await client.hgetall(timedKeys('schedule', NAME).leases);
  const told = (await linesOf({ log })).flatMap(([what, object]) =>
    what === 'taken' ? object : [],
  );
  const takerOf = (lease) => lease.slice(0, lease.indexOf('~'));
  const mine = told.map((object) => leases[JSON.stringify(object)]).find(Boolean);
  return Object.entries(leases)
    .filter(([, lease]) => mine && takerOf(lease) === takerOf(mine))
    .map(([key, lease]) => {
      const [, at, ends] = lease.split(' ').map(Number);
      return {
        object: JSON.parse(key),
        at,
        server: ends - lockMs,
        told: told.includes(JSON.parse(key)),
      };
    });
}

/** What went against the rules; `held`: by the `killed` one when it died. */
function judged(takes, killed, held, count) {
  const wasHeld = new Set(held.map(({ object, server: time }) => `${object} ${time}`));
  const early = takes.filter(({ at, server: time, own = at }) => time < at || own < at);
  const byObject = Map.groupBy
    ? Map.groupBy(takes, ({ object }) => object)
    : takes.reduce(
        (map, one) => map.set(one.object, [...(map.get(one.object) ?? []), one]),
        new Map(),
      );
  const lost = count - byObject.size;
  const twice = [];
  const firsts = [];
  let back = 0;
  let late = 0;
  for (const [object, list] of byObject) {
    firsts.push(list[0]);
    if (list.length === 1) continue;
    // The killed one was not told any more; others only when the lock was over.
    const excused = list
      .slice(0, -1)
      .every(({ taker, server: time, answer }) =>
        answer ? !answer.counted && answer.at >= time + lockMs : taker === killed,
      );
    const apart = list.every((one, i) => i === 0 || one.server >= list[i - 1].server + lockMs);
    if (!excused || !apart) twice.push(object);
    for (const { server: time } of list.slice(0, -1)) {
      if (wasHeld.has(`${object} ${time}`)) back += 1;
      else late += 1;
    }
  }
  firsts.sort((a, b) => a.server - b.server || a.at - b.at);
  const disorder = firsts.filter((one, i) => i > 0 && one.at < firsts[i - 1].at).length;
  return { early: early.length, lost, twice: twice.length, disorder, back, late, firsts };
}

function percentiles(times) {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  return { p50: at(0.5), p99: at(0.99), max: sorted.at(-1) };
}

/** Commands of all takers together, those inside scripts not counted. */
async function idleCommands() {
  const client = new Redis(server.url);
  const monitor = await client.monitor();
  let commands = 0;
  monitor.on('monitor', (_time, _args, source) => {
    if (source !== 'lua') commands += 1;
  });
  await sleep(idleSeconds * 1_000);
  monitor.disconnect();
  await client.quit();
  return commands;
}

try {
  const scheduler = new Scheduler({ redis: server.url, name: NAME });
  const argument = { redis: server.url, name: NAME, lockMs };
  const all = [];
  for (let i = 0; i < takers; i += 1) all.push(await start(`taker-${i}`, argument));
  const step = (seconds * 1_000) / objects;
  const began = Date.now() + LEAD_MS + objects / 10;
  const due = (i) => began + Math.floor(i * step);
  await Promise.all(
    Array.from({ length: objects }, (_, i) => scheduler.enqueue(`object-${i}`, due(i))),
  );
  await scheduler.enqueue(IDLE_OBJECT, Date.now() + HOUR_MS);
  const spareMs = began - Date.now();
  const control = await start('control', { times: [began, step, objects] });
  const over = once(control.child, 'message');

  // One of them is killed half-way, when it holds some.
  await sleep(Math.max(0, began + (seconds * 1_000) / 2 - Date.now()));
  const victim = takers - 1;
  const holds = once(all[victim].child, 'message').then(() => true);
  all[victim].child.send('hold');
  let count = objects;
  while (!(await Promise.race([holds, sleep(1_000, false)]))) {
    const { waiting } = await scheduler.counts();
    if (waiting > 1) continue;
    // The others had them all, before it was told, or while it was held up.
    const now = Date.now();
    for (let i = 0; i < 20; i += 1, count += 1) await scheduler.enqueue(`object-${count}`, now + i);
  }
  all[victim].child.kill('SIGKILL');
  await once(all[victim].child, 'exit');
  // What it had sent by then has arrived.
  await sleep(SETTLED_MS);
  const client = new Redis(server.url);
  const held = await heldBy(all[victim], client);
  await client.quit();
  await over;
  for (let left = 1; left > 0; ) {
    const { waiting, locked } = await scheduler.counts();
    left = waiting + locked - 1;
    if (left > 0) await sleep(200);
  }
  await sleep(500);
  const untold = held.filter(({ told }) => !told).map((one) => ({ ...one, taker: victim }));
  const takes = [...(await takesOf(all)), ...untold].sort(
    (a, b) => a.server - b.server || a.at - b.at,
  );
  const holding = held.length;
  const { firsts, ...verdict } = judged(takes, victim, held, count);
  const idle = await idleCommands();
  const idlePerSecond = idle / idleSeconds / (takers - 1);
  const timers = (await linesOf(control)).map(([, , at, own]) => Number(own) - Number(at));
  const alive = firsts.filter(({ taker }) => taker !== victim);
  const lateness = {
    'taken by the server': percentiles(alive.map(({ at, server: time }) => time - at)),
    'in the hands of the taker': percentiles(alive.map(({ at, own }) => own - at)),
    'a bare setTimeout': percentiles(timers),
  };
  const passed =
    verdict.early + verdict.lost + verdict.twice + verdict.disorder === 0 &&
    verdict.back === holding &&
    idlePerSecond <= 2;
  const found = {
    ...{
      objects: count,
      seconds,
      takers,
      lockMs,
      takes: takes.length,
      holding,
      spareMs,
      ...verdict,
    },
    ...{
      lateness,
      idle: { seconds: idleSeconds, commands: idle, perSecondAndProcess: idlePerSecond },
    },
    passed,
  };
  if (values.json) console.log(JSON.stringify(found));
  else {
    console.log(
      `${count} objects over ${seconds} s, ${takers} takers, one killed holding ${holding}: ` +
        `${takes.length} takes, ${verdict.back} came back from the killed one, ${verdict.late} from others; early ${verdict.early}, ` +
        `lost ${verdict.lost}, twice ${verdict.twice}, out of order ${verdict.disorder}`,
    );
    const table = new Table({ head: ['late by, ms', 'p50', 'p99', 'max'] });
    for (const [what, { p50, p99, max }] of Object.entries(lateness))
      table.push([what, p50, p99, max]);
    console.log(table.toString());
    console.log(
      `idle: ${idle} commands of ${takers - 1} processes in ${idleSeconds} s, ${idlePerSecond.toFixed(2)} per second and process`,
    );
    console.log(passed ? 'passed' : 'FAILED');
  }
  await scheduler.drop();
  await scheduler.close();
  process.exitCode = passed ? 0 : 1;
} finally {
  for (const child of children) child.kill('SIGKILL');
  await server.close();
  await rm(folder, { recursive: true, force: true });
}
