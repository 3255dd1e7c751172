// A worker of whole-life.mjs. What it runs says by its number what becomes of it: every 20th fails
// at its first attempt, every 100th for good until somebody has healed the cause.
//
// Its journal, a line each, written through to the kernel before it goes on, so that a kill loses
// nothing; times in ns of the clock that all processes of a machine share:
//   l turn ns            it lives, and has taken nothing yet
//   b turn ns run index  a handler begins
//   a turn ns run index  its signal aborted
//   e turn ns run index  it ended
//   s turn ns index      the server has taken its outcome
// What one reply brought is in one turn of the event loop: what begins in the turn of an `s` begins
// by the reply of that settle.
import { openSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { UnrecoverableError, Worker } from 'piecework';

const { url, journal, workMs, leaseMs } = JSON.parse(process.argv[2]);
const redis = new Redis(url);
const file = openSync(journal, 'a');
let [turn, turns, runs] = [0, 0, 0];
function note(kind, ...what) {
  if (turn === 0) {
    turns += 1;
    turn = turns;
    setImmediate(() => {
      turn = 0;
    });
  }
  writeSync(file, `${[kind, turn, process.hrtime.bigint(), ...what].join(' ')}\n`);
}

async function handler({ n, aside }, { attempt, signal }) {
  if (aside) return n;
  runs += 1;
  const run = runs;
  note('b', run, n);
  signal.addEventListener('abort', () => note('a', run, n), { once: true });
  await sleep((n * 7) % (workMs + 1));
  const broken = n % 100 === 7 && (await redis.get('healed')) === null;
  note('e', run, n);
  if (broken) throw new UnrecoverableError('not before it is healed');
  if (n % 20 === 3 && attempt === 1) throw new Error('the first attempt fails');
  return n * 2;
}

const worker = new Worker({ redis: url, concurrency: 20, leaseMs, handler });
worker.on('settled', ({ index }) => note('s', index));
note('l');
await worker.start();
process.on('SIGTERM', async () => {
  await worker.close({ timeoutMs: 5_000 });
  redis.disconnect();
});
