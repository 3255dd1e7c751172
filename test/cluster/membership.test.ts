/**
 * Masters that are added and removed while work runs.
 * @module-tag processes
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type EmbeddedCluster, startCluster, startRedis } from '@piecework/embedded';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { numbers } from '../support/flow.js';
import { moving, nameThere } from '../support/moving.js';
import { until } from '../support/until.js';

type Range = readonly [number, number];

let cluster: EmbeddedCluster;
beforeAll(async () => {
  cluster = await startCluster({ password: '', replicasPerMaster: 0 });
});
afterAll(() => cluster?.close());

test('a master comes, and gets the queue and some requests; the one that had them goes', {
  timeout: 300_000,
}, async () => {
  const scene = await moving({ cluster });
  const { operator, queue } = scene;
  const slot = await operator.slotOf(queue);
  const old = await operator.masterOf(slot);
  const [[first, last] = [0, 0]] = old.slots;
  const middle = Math.floor((first + last) / 2);
  // The half with the slot of the queue goes to the one that comes.
  const lower: Range = [first, middle];
  const upper: Range = [middle + 1, last];
  const isIn = ([from, to]: Range, it: number) => from <= it && it <= to;
  const [given, kept] = isIn(lower, slot) ? [lower, upper] : [upper, lower];
  const idIn = (name: string, range: Range) =>
    nameThere(operator, `${queue}.${name}`, (_, it) => it !== slot && isIn(range, it));

  const work = () => scene.worker(() => sleep(5), { concurrency: 5 });
  const workers = [await work(), await work()];
  const producer = scene.producer();
  const notifier = scene.notifier();
  const completionOf = (id: string) => {
    const completion = notifier.completion(id, { timeoutMs: 240_000 });
    completion.catch(() => {});
    return completion;
  };
  const submit = async (id?: string) => {
    const request = await producer.submit(numbers(8), { limit: 3, ...(id ? { id } : {}) });
    return { ...request, completion: completionOf(request.id) };
  };
  // Two that live through it all, one in either half.
  const open = [];
  for (const range of [given, kept]) {
    const request = await producer.open({ id: await idIn('open', range) });
    await request.append(...numbers(5));
    await request.flush();
    open.push({ request, completion: completionOf(request.id) });
  }
  // One who has nothing to wait for any more keeps his connection there.
  const idle = scene.notifier();
  const short = await submit(await idIn('short', kept));
  await idle.completion(short.id);
  let over = false;
  const submitting = [1, 2].map(async () => {
    const done = [];
    while (!over) {
      done.push(await submit());
      await sleep(100);
    }
    return done;
  });
  onTestFinished(() => {
    over = true;
  });
  const goesOn = async (what: string) => {
    const before = scene.runs.size;
    await until(() => scene.runs.size > before + 20, { what, timeoutMs: 60_000 });
  };
  await goesOn('work has begun');

  const server = await startRedis({
    password: '',
    args: ['--cluster-enabled', 'yes', '--cluster-node-timeout', '3000'],
  });
  onTestFinished(() => server.close());
  const fresh = await operator.join(server);
  await operator.moveRange(given, fresh);
  expect((await operator.masterOf(slot)).id).toBe(fresh.id);
  await goesOn('work goes on with a master more');
  const late = [await submit(await idIn('late', given)), await submit(await idIn('late', kept))];

  const third = (await operator.nodes()).find(({ id }) => ![old.id, fresh.id].includes(id));
  if (!third) throw new Error('there are more masters');
  await operator.moveRange(kept, third);
  await operator.leave(old);
  // It still answers, alone, to whoever asks: nobody does any more.
  const mine = String(await operator.at(old).client('ID'));
  const strangers = async () => {
    const list = String(await operator.at(old).client('LIST'))
      .trim()
      .split('\n');
    return list.filter((line) => !line.startsWith(`id=${mine} `));
  };
  await until(async () => (await strangers()).length === 0, {
    what: 'nobody is connected to the one that left',
    timeoutMs: 45_000,
  }).catch(async (error: Error) => {
    throw new Error(`${error.message}\n${(await strangers()).join('\n')}`);
  });
  operator.drop(old);
  await cluster.kill(cluster.nodes.findIndex(({ port }) => port === old.port));
  await goesOn('work goes on with a master less');

  over = true;
  for (const { request } of open) {
    await request.append(...numbers(3, 5));
    await request.seal();
  }
  const requests = [short, ...late, ...(await Promise.all(submitting)).flat()];
  for (const { completion } of [...requests, ...open])
    expect(await completion).toMatchObject({ status: 'succeeded', counts: { succeeded: 8 } });
  await scene.allRight([...requests, ...open.map(({ request: { id } }) => ({ id, total: 8 }))]);
  expect(scene.ranAgain()).toEqual([]);
  await until(() => workers.every((worker) => worker.health().ready));
  expect(scene.log.lines.filter(({ level }) => level === 'error')).toEqual([]);
});
