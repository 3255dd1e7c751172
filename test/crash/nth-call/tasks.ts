import type { DelayedTasks, TaskOptions } from 'piecework';
import { moveClock } from '../../support/clock.js';
import type { Stage } from './stage.js';

/*
 * Delayed tasks, where the n-th call goes wrong of who puts one in, or of who moves and runs them.
 */

export const DELAY_MS = 30_000;
const ONCE = { counts: { succeeded: 1 } };

function workerOf(stage: Stage, tasks: DelayedTasks, queues: readonly string[]) {
  const handlers = { note: stage.handler };
  const logger = stage.log as never;
  return tasks.worker({ queues, handlers, logger, concurrency: 1, maxBlockMs: 0 });
}

/** Whoever gets an error asks again, in another process if this one ended. */
export const putIn = (options: TaskOptions) => async (stage: Stage) => {
  const { queue } = stage;
  const id = stage.id('task');
  const [faulty, well] = [await stage.tasks('faulty'), await stage.tasks('well')];
  await workerOf(stage, well, [queue]).start();
  const put = (tasks: DelayedTasks) =>
    tasks.executeLater(queue, 'note', ['it'], { ...options, id });
  const asked = (async () => {
    const died = stage.faults.died.then(() => false);
    const first = put(faulty).then(
      () => true,
      () => false,
    );
    if (!(await Promise.race([died, first]))) await put(well);
  })();
  await stage.heal(asked);
  return stage.judge(id, ONCE);
};

/** Tasks of two queues that are due, and one that was not delayed; another process takes over if this one ends. */
export async function movedAndRun(stage: Stage): Promise<string[]> {
  const queues = [stage.queue, stage.anotherQueue()] as const;
  const putter = await stage.tasks('well');
  const put = async (queue: string, name: string, options: TaskOptions) => {
    const id = stage.id(name);
    await putter.executeLater(queue, 'note', [name], { ...options, id });
    return id;
  };
  const ids = [
    await put(queues[1], 'late', { delayMs: DELAY_MS }),
    await put(queues[1], 'plain', {}),
    await put(queues[0], 'urgent', { delayMs: DELAY_MS }),
  ];
  // Nobody else moves them at once.
  await putter.close();
  moveClock(DELAY_MS + 1);
  await stage.replaced(async (how) => workerOf(stage, await stage.tasks(how, queues), queues));
  await stage.heal(Promise.resolve());
  const wrong = await Promise.all(ids.map((id) => stage.judge(id, ONCE)));
  return wrong.flat();
}
