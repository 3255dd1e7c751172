// Delayed tasks: reminders that are due at their times, one that is taken back, and alarms that go first.
//
//   node examples/delayed-tasks/delayed-tasks.mjs [--redis redis://…]       (default: REDIS_URL, or embedded)
//
// Standard output: one line of JSON for each task that ran. This process puts them in, moves and runs them;
// any number of processes may do each.

import { resolveRedisUrl } from '@piecework/embedded';
import { Command } from 'commander';
import { nanoid } from 'nanoid';
import { DelayedTasks } from 'piecework';
import { redis as redisUrl } from '../option-values.mjs';

const given = new Command('delayed-tasks')
  .description('Tasks that are due at their times')
  .option('--redis <url>', 'default: REDIS_URL, or embedded', redisUrl)
  .allowExcessArguments(false)
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .parse()
  .opts();

const say = (text) => console.error(text);
const print = (what) => console.log(JSON.stringify(what));
const run = nanoid(8);
const [alarms, mail] = [`alarms-${run}`, `mail-${run}`];

const redis = given.redis ? { url: given.redis } : await resolveRedisUrl({ onStatus: say });
const tasks = new DelayedTasks({ redis: redis.url });
try {
  // A free slot takes from the first of the queues that has a task.
  const worker = tasks.worker({
    queues: [alarms, mail],
    concurrency: 1,
    handlers: {
      remind: async ([whom, of], { requestId }) => print({ id: requestId, remind: whom, of }),
      alarm: async ([what], { requestId, attempt }) => {
        if (attempt === 1) throw new Error('the line is busy');
        print({ id: requestId, alarm: what, attempt });
      },
    },
  });
  await worker.start();

  const later = [
    await tasks.executeLater(mail, 'remind', ['Ann', 'the report'], { delayMs: 5_000 }),
    await tasks.executeLater(mail, 'remind', ['Bob', 'the meeting'], { delayMs: 2_500 }),
    await tasks.executeLater(mail, 'remind', ['Cid', 'lunch']),
  ];
  const never = await tasks.executeLater(mail, 'remind', ['Dot', 'it'], { delayMs: 3_600_000 });
  await tasks.cancel(mail, never);
  const alarm = await tasks.executeLater(alarms, 'alarm', ['the door'], {
    ...{ priority: 0, attempts: 3, backoff: 100 },
  });

  for (const id of [...later, never]) say(`${id} ${(await tasks.completion(mail, id)).status}`);
  say(`${alarm} ${(await tasks.completion(alarms, alarm)).status}`);
} finally {
  await tasks.close();
  await redis.close?.();
}
