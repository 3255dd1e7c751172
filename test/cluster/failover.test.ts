/**
 * Masters that are replaced while work runs.
 * @module-tag processes
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Subscriber } from '@piecework/protocol';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { numbers } from '../support/flow.js';
import { moving, nameThere } from '../support/moving.js';
import { testCluster } from '../support/redis.js';
import { until } from '../support/until.js';

// Here they are to be replaced, and soon.
beforeAll(() => testCluster(3_000));

test('the master of the queue, then that of a request, hands over to its replica', {
  timeout: 240_000,
}, async () => {
  const scene = await moving();
  const { operator, queue } = scene;
  const home = await operator.masterOf(await operator.slotOf(queue));
  const id = await nameThere(operator, `${queue}.r`, (master) => master !== home.id);
  const worker = await scene.worker(() => sleep(10), { concurrency: 8 });
  const producer = scene.producer();
  const notifier = scene.notifier();
  const submissions = numbers(10).map((n) => producer.submit(numbers(30), { priority: n % 3 }));
  const long = await producer.submit(numbers(150), { id, limit: 4 });
  const completion = notifier.completion(id);
  completion.catch(() => {});

  await until(() => scene.runs.size > 20);
  await operator.failover(home);
  // One that comes now: of the others all may have run by then, on a machine that is slow to hand over.
  const late = await producer.submit(numbers(30));
  await until(() => scene.runs.has(`${late.id} 0`), { what: 'work goes on', timeoutMs: 40_000 });
  await operator.failover(await operator.masterOf(await operator.slotOf(id)));

  const requests = [long, late, ...(await Promise.all(submissions))];
  expect(await completion).toMatchObject({ counts: { succeeded: 150 } });
  await scene.allRight(requests);
  // In good order nothing is lost, so nothing runs again.
  expect(scene.ranAgain()).toEqual([]);
  await until(() => worker.health().ready);
  expect(scene.log.lines.filter(({ level }) => level === 'error')).toEqual([]);
});

test('who waits hears of an end on whichever master it comes', {
  timeout: 240_000,
}, async () => {
  const scene = await moving();
  const { operator, queue } = scene;
  const notifier = scene.notifier();
  const producer = scene.producer();
  const slot = await operator.slotOf(queue);
  const ids: string[] = [];
  for (const name of ['moved', 'handed-over', 'both'])
    ids.push(await nameThere(operator, `${queue}.${name}`, (_, it) => it !== slot));
  const requests = [];
  for (const id of ids) requests.push(await producer.submit(numbers(3), { id }));
  const completions = ids.map((id) => notifier.completion(id));
  for (const one of completions) one.catch(() => {});
  const [moved = 0, handedOver = 0, both = 0] = await Promise.all(
    ids.map((id) => operator.slotOf(id)),
  );
  await operator.move(moved);
  await operator.failover(await operator.masterOf(handedOver));
  await operator.move(both);
  await operator.failover(await operator.masterOf(both));
  await scene.worker(() => {}, { concurrency: 3 });
  const outcomes = await Promise.all(completions);
  expect(outcomes.map(({ counts }) => counts.succeeded)).toEqual([3, 3, 3]);
  await scene.allRight(requests);
});

test('two thousand requests are awaited over no more connections than one', {
  timeout: 240_000,
}, async () => {
  const scene = await moving();
  const { operator } = scene;
  const producer = scene.producer();
  const notifier = scene.notifier();
  const connections = async () => {
    const lists = await Promise.all(
      (await operator.nodes()).map(async (node) => String(await operator.at(node).client('LIST'))),
    );
    return lists.join('\n').match(/name=piecework-notifier/g)?.length ?? 0;
  };
  const count = 2_000;
  const ids: string[] = [];
  for (let i = 0; i < count; i += 100) {
    const some = numbers(100).map(() => producer.submit([1]));
    ids.push(...(await Promise.all(some)).map(({ id }) => id));
  }
  const awaited = ids.map((id) => notifier.completion(id));
  for (const one of awaited) one.catch(() => {});
  const masters = (await operator.nodes()).filter(({ role, up }) => role === 'master' && up).length;
  const subscribed = async () => {
    const counts = await Promise.all(
      (await operator.nodes()).map(async (node) => {
        const channels = (await operator.at(node).call('PUBSUB', 'SHARDCHANNELS')) as string[];
        return channels.filter((channel) => channel.startsWith('done:')).length;
      }),
    );
    return counts.reduce((sum, each) => sum + each);
  };
  await until(async () => (await subscribed()) >= count, {
    what: 'all are subscribed',
    timeoutMs: 60_000,
  });
  await until(async () => (await connections()) === masters, {
    what: 'there is one connection to each master',
  });
  await scene.worker(() => {}, { concurrency: 50 });
  const outcomes = await Promise.all(awaited);
  expect(outcomes.every(({ status }) => status === 'succeeded')).toBe(true);
  await until(async () => (await connections()) <= masters, { what: 'nor are there more now' });
});

test('a master that hangs is replaced, and comes back as a replica', {
  timeout: 240_000,
}, async () => {
  const scene = await moving();
  const { operator, queue } = scene;
  const cluster = await testCluster();
  const slot = await operator.slotOf(queue);
  const old = await operator.masterOf(slot);
  const pid = cluster.nodes.find(({ port }) => port === old.port)?.pid;
  if (!pid) throw new Error('the master is no node of this cluster');
  const worker = await scene.worker(() => sleep(10), { concurrency: 8 });
  const producer = scene.producer();
  const requests = await Promise.all(numbers(10).map(() => producer.submit(numbers(60))));
  await until(() => scene.runs.size > 20);
  // Nobody asks this one for a sign of life.
  const channel = `{${queue}}:heard`;
  const nobody = () => {};
  const events = { onNotice: nobody, onMaybeMissed: nobody, onError: nobody };
  const subscriber = new Subscriber(scene.connection, events);
  onTestFinished(() => subscriber.close());
  subscriber.add(channel);
  const listens = async () => {
    const master = await operator.masterOf(slot);
    const channels = await operator.at(master).call('PUBSUB', 'SHARDCHANNELS', channel);
    return (channels as string[]).length > 0;
  };
  await until(listens);
  process.kill(pid, 'SIGSTOP');
  try {
    await until(async () => (await operator.masterOf(slot)).id !== old.id, {
      timeoutMs: 30_000,
      what: 'the others have replaced it',
    });
    // Nobody says a word to who waits for an answer of the one that hangs.
    const late = await producer.submit(numbers(60));
    requests.push(late);
    const begun = () => [...scene.runs.keys()].some((run) => run.startsWith(`${late.id} `));
    await until(begun, { timeoutMs: 40_000, what: 'work goes on without it' });
    await until(listens, {
      timeoutMs: 40_000,
      what: 'it is listened to where the messages are by now',
    });
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  await scene.allRight(requests);
  await until(() => worker.health().ready);
  await until(
    async () =>
      (await operator.nodes()).some(
        ({ id, role, up }) => id === old.id && role === 'replica' && up,
      ) && (await operator.at(old).info('replication')).includes('master_link_status:up'),
    { timeoutMs: 30_000, what: 'it follows' },
  );
});

// The last one: it leaves the cluster with a node less.
test('the master of the queue and of some requests is killed; its replica takes over', {
  timeout: 240_000,
}, async () => {
  const scene = await moving();
  const { operator, queue } = scene;
  const cluster = await testCluster();
  const { port } = await operator.masterOf(await operator.slotOf(queue));
  const worker = await scene.worker(() => sleep(10), { concurrency: 8 });
  const producer = scene.producer();
  const notifier = scene.notifier();
  const requests = await Promise.all(
    numbers(10).map((n) => producer.submit(numbers(60), { priority: n % 3 })),
  );
  const completions = requests.map(({ id }) => notifier.completion(id));
  for (const one of completions) one.catch(() => {});
  await until(() => scene.runs.size > 20);
  await cluster.kill(cluster.nodes.findIndex((node) => node.port === port));
  const soFar = scene.runs.size;
  requests.push(await producer.submit(numbers(5)));
  const outcomes = await Promise.all(completions);
  expect(outcomes.every(({ counts }) => counts.succeeded === 60)).toBe(true);
  expect(scene.runs.size).toBeGreaterThan(soFar);
  await scene.allRight(requests);
  await until(() => worker.health().ready);
});
