// A process that puts tasks into a queue, and moves what is due for as long as its standard input is open.
// Its argument, JSON: { redis, queue }. Each line that it reads is JSON: { from, to, of, delayMs, share },
// the tasks to put in: numbers from `from` to `to`, those of which `number % of` is its `share`. The first
// half of each priority's are delayed, by up to `delayMs`. When they are in it says { submitted }.
import { createInterface } from 'node:readline';
import pMap from 'p-map';
import { DelayedTasks } from 'piecework';

const { redis, queue } = JSON.parse(process.argv[2]);
const AT_ONCE = 64;
const tasks = new DelayedTasks({ redis, moves: [queue] });

for await (const line of createInterface({ input: process.stdin })) {
  const { from, to, of, delayMs, share } = JSON.parse(line);
  const numbers = [];
  for (let n = from; n < to; n += 1) if (n % of === share) numbers.push(n);
  await pMap(numbers, (n) => put(n, delayMs), { concurrency: AT_ONCE });
  console.log(JSON.stringify({ submitted: numbers.length }));
}
await tasks.close();

/** Which of them are delayed, their priority and delay follow from the number, all unlike each other. */
function put(n, delayMs) {
  const isDelayed = Math.floor(n / 100) % 2 === 0;
  const options = { priority: (n * 37) % 100, retentionMs: 60_000 };
  if (isDelayed) options.delayMs = 1 + ((n * 7_919) % delayMs);
  return tasks.executeLater(queue, 'note', [n], options);
}
