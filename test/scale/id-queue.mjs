// Producer and consumer processes on one queue of ids, some consumers killed with SIGKILL with tasks in their
// hands. Prints what happened in every second; in the end the counts have to be exact.
//
//   node test/scale/id-queue.mjs [--ids 100000] [--producers 4] [--consumers 8] [--callers 4] [--batch 100]
//                                [--kills 8] [--timeout-ms 2000] [--fail-every 50] [--redis URL] [--json]
//
// Exit code 1 when a count is wrong, when two had one task in hand at once by the server's clock, or when
// nothing was resumed although consumers were killed.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startRedis } from '@piecework/embedded';
import Table from 'cli-table3';
import { IdQueue } from 'piecework';

const { values } = parseArgs({
  options: {
    ids: { type: 'string', default: '100000' },
    producers: { type: 'string', default: '4' },
    consumers: { type: 'string', default: '8' },
    callers: { type: 'string', default: '4' },
    batch: { type: 'string', default: '100' },
    kills: { type: 'string', default: '8' },
    'timeout-ms': { type: 'string', default: '2000' },
    'fail-every': { type: 'string', default: '50' },
    redis: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const [ids, producers, consumers, callers, batch, kills] = [
  ...[values.ids, values.producers, values.consumers, values.callers],
  ...[values.batch, values.kills],
].map(Number);
const [timeoutMs, failEvery] = [values['timeout-ms'], values['fail-every']].map(Number);
const PROCESS = fileURLToPath(new URL('id-queue-process.mjs', import.meta.url));
const KINDS = ['added', 'pulled', 'completed', 'failed'];
const name = `scale-${process.pid}`;

const server = values.redis ? undefined : await startRedis({});
const redis = values.redis ?? server.url;
const queue = await IdQueue.join(name, { redis, timeoutMs, unique: false });
const children = new Set();
const holds = [];
const seen = { added: 0, killed: 0, resumed: 0, late: 0 };
const seconds = [];
let second = Object.fromEntries(KINDS.map((kind) => [kind, 0]));
let toKill = kills;
let sealed = false;

function start(role, more) {
  const argument = { role, redis, name, batch, callers, failEvery, ...more };
  const child = fork(PROCESS, [JSON.stringify(argument)]);
  children.add(child);
  // Of a message to one that is just being killed; how it ended is checked.
  child.on('error', () => {});
  let before = { resumed: 0, late: 0 };
  child.on('message', ({ full, reading, holds: theirs, resumed, late }) => {
    if (full) {
      if (toKill === 0) return void child.send('live', () => {});
      toKill -= 1;
      return void child.kill('SIGKILL');
    }
    for (const [key, stamp] of theirs) holds.push([...key.split('-').map(Number), stamp]);
    seen.resumed += resumed - before.resumed;
    seen.late += late - before.late;
    before = { resumed, late };
    for (const kind of KINDS) second[kind] += reading.rates[kind].fresh;
    seen.added += reading.rates.added.fresh;
  });
  // What it said last is read by then.
  const ended = Promise.all([once(child, 'exit'), once(child, 'disconnect')]).then(
    ([[code, signal]]) => {
      children.delete(child);
      return signal ?? code;
    },
  );
  return { child, ended };
}

/**
 * One place of a consumer: whoever is killed there has a successor. Those are killed who first had as many
 * tasks in hand as none can do without: one that starts late may get none.
 */
async function consumerPlace(i) {
  const fullAfter = Math.ceil((ids / consumers / 4) * (0.5 + i / consumers));
  for (;;) {
    const { child, ended } = start('consumer', { fullAfter });
    if (sealed) tellSealed(child);
    const how = await ended;
    if (how === 0) return;
    if (how !== 'SIGKILL') throw new Error(`a consumer ended with ${how}`);
    seen.killed += 1;
  }
}

async function produceAll() {
  const share = Math.ceil(ids / producers);
  const all = Array.from({ length: producers }, (_, i) =>
    start('producer', { from: i * share, to: Math.min(ids, (i + 1) * share) }),
  );
  const codes = await Promise.all(all.map(({ ended }) => ended));
  if (codes.some((code) => code !== 0)) throw new Error(`producers ended with ${codes}`);
  sealed = true;
  children.forEach(tellSealed);
}

/** One that was just killed may not be told any more; its successor is. */
function tellSealed(child) {
  child.send('sealed', () => {});
}

/** Tasks that had two holders at once: the next attempt began before the one before could be over. */
function twoAtOnce() {
  const sorted = holds.toSorted((a, b) => a[0] - b[0] || a[1] - b[1]);
  return sorted.filter(([number, attempt, stamp], i) => {
    const [next, nextAttempt, nextStamp] = sorted[i + 1] ?? [];
    if (next !== number) return false;
    return nextAttempt === attempt || nextStamp < stamp + (nextAttempt - attempt) * timeoutMs;
  }).length;
}

const begun = performance.now();
const ticking = setInterval(async () => {
  const { pending, running } = await queue.counts();
  const row = { second: seconds.length + 1, ...second, pending, running };
  second = Object.fromEntries(KINDS.map((kind) => [kind, 0]));
  seconds.push(row);
  if (!values.json) console.log(Object.entries(row).flat().join(' '));
}, 1_000);

try {
  await Promise.all([
    produceAll(),
    ...Array.from({ length: consumers }, (_, i) => consumerPlace(i)),
  ]);
  const ms = performance.now() - begun;
  clearInterval(ticking);
  const counts = await queue.counts();
  const expected = { pending: 0, running: 0, completed: ids, failures: Math.ceil(ids / failEvery) };
  const kept = (await queue.failures()).length;
  await queue.drop();
  const wrong = Object.keys(expected).filter((field) => counts[field] !== expected[field]);
  if (seen.added !== ids) wrong.push('added');
  if (kept !== Math.min(100, expected.failures)) wrong.push('failures kept');
  const doubled = twoAtOnce();
  if (doubled > 0) wrong.push('two holders at once');
  if (seen.killed !== kills || (kills > 0 && seen.resumed === 0)) wrong.push('resumed');
  const perSecond = Math.round(ids / (ms / 1_000));
  const report = { counts, expected, ...seen, doubled, kept, ms: Math.round(ms), perSecond, wrong };
  if (values.json) console.log(JSON.stringify({ ...report, seconds }));
  else {
    const table = new Table({ style: { head: [], border: [] } });
    for (const [what, value] of Object.entries(report)) table.push([what, JSON.stringify(value)]);
    console.log(table.toString());
  }
  if (wrong.length > 0) process.exitCode = 1;
} finally {
  clearInterval(ticking);
  for (const child of children) child.kill('SIGKILL');
  await queue.close();
  await server?.close();
}
