/**
 * Hash slots that refuse for as long as a test likes: half moved (TRYAGAIN), or held by nobody
 * (CLUSTERDOWN). Who calls learns of it in time and by name; who holds work holds it, and says so.
 * @module-tag processes
 */

import { startCluster } from '@piecework/embedded';
import {
  Connection,
  ConnectionError,
  IndeterminateError,
  Patience,
  type PieceworkError,
  ServerError,
  Subscriber,
  TimeoutError,
} from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import { IdQueue, RetryQueue, Scheduler } from '@piecework/queues';
import { Worker } from '@piecework/worker';
import { Cluster } from 'ioredis';
import { Admin } from 'piecework';
import { expect, onTestFinished, test } from 'vitest';
import { ClusterOperator } from '../../tools/chaos/src/cluster/moves.js';
import { gate, numbers } from '../support/flow.js';
import { moving, nameThere } from '../support/moving.js';
import { until } from '../support/until.js';

/** Little, so that the tests are short: an attempt has a second in any case. */
const unavailableMs = 500;
/** Much more than that, and less than the 30 s of the default. */
const SOON_MS = 10_000;
const STALL = /^calls of \S+ have not been answered for \d+ s: .*on its way/;

/** What a call is refused with, which has to come soon. */
async function refusalOf(call: Promise<unknown>): Promise<PieceworkError> {
  const began = performance.now();
  const error = await call.then(
    (answer) => new Error(`not refused: ${JSON.stringify(answer)}`),
    (thrown: unknown) => thrown,
  );
  expect(performance.now() - began).toBeLessThan(SOON_MS);
  return error as PieceworkError;
}

/** The same of a call that may be made again: a busy machine cuts off what is just under way. */
async function clearRefusalOf(call: () => Promise<unknown>): Promise<PieceworkError> {
  for (let attempt = 1; ; attempt += 1) {
    const error = await refusalOf(call());
    const cutOff = error instanceof IndeterminateError || error instanceof ConnectionError;
    if (!cutOff || attempt === 3) return error;
  }
}

test('a request whose slot stays half moved', { timeout: 240_000 }, async () => {
  const scene = await moving();
  const { operator, queue, redis } = scene;
  const slot = await operator.slotOf(queue);
  const id = await nameThere(operator, `${queue}.half`, (_, it) => it !== slot);
  const held = gate();
  // Nobody can renew meanwhile.
  const options = { concurrency: 2, leaseMs: 300_000 };
  const worker = await scene.worker(() => held.opened, options);
  const errors: Error[] = [];
  worker.on('error', (error) => void errors.push(error));
  const producer = scene.producer();
  const open = await producer.open({ id, limit: 2, unavailableMs });
  await open.append(...numbers(4));
  await open.flush();
  await until(() => scene.runs.size === 2);
  const patient = await producer.open({ id, limit: 2 });

  // One of its keys is there, all others here.
  const move = await operator.beginMove(await operator.slotOf(id));
  await move.step(1);
  held.open();

  const refused = await refusalOf(open.append(4).then(() => open.flush()));
  // On a busy machine the last attempt may be cut off while it is under way.
  if (!(refused instanceof IndeterminateError)) {
    expect(refused).toBeInstanceOf(ServerError);
    expect(refused).toMatchObject({ code: 'SLOT_MOVES', retryable: true });
    expect(refused.message).toMatch(/(TRYAGAIN|MOVED|ASK) .*on its way/);
  }
  const hasty = scene.notifier({ unavailableMs });
  await until(async () => (await refusalOf(hasty.status(id))).code === 'SLOT_MOVES');
  await using admin = new Admin({ redis, queue, unavailableMs });
  const update = () => admin.update(id, { limit: 3 });
  await until(async () => (await refusalOf(update())).code === 'SLOT_MOVES');
  // A state is one key, which is found wherever it is.
  expect(await scene.request(id).state()).toMatchObject({ status: 'open' });

  // What ran is held and reported again and again; the worker says so.
  await until(() => STALL.test(worker.health().why.join('\n')), { timeoutMs: 20_000 });
  expect(worker.health()).toMatchObject({ live: true, ready: true });
  await until(() => errors.some((error) => (error as PieceworkError).code === 'SLOT_MOVES'));
  expect(scene.log.lines.filter(({ what }) => /^calls stall/.test(what))).toHaveLength(1);

  // Whoever has the patience gets it done.
  const asked = [scene.notifier().status(id), patient.append(...numbers(2, 5))] as const;
  while ((await move.step(10)) > 0);
  await move.finish();
  expect((await asked[0]).id).toBe(id);
  await asked[1];
  await patient.seal();
  await until(async () => (await scene.request(id).state())?.status === 'complete');
  const state = await scene.request(id).state();
  expect(state?.succeeded).toBe(state?.total);
  expect(scene.ranAgain()).toEqual([]);
  await until(() => worker.health().why.length === 0);
});

test('slots that nobody holds', { timeout: 240_000 }, async () => {
  const scene = await moving();
  const { operator, redis, queue } = scene;
  const slot = await operator.slotOf(queue);
  const owner = await operator.masterOf(slot);
  const nodes = await operator.nodes();
  const cover = (how: 'yes' | 'no') =>
    Promise.all(
      nodes.map((node) => operator.at(node).config('SET', 'cluster-require-full-coverage', how)),
    );
  const options = { redis, unavailableMs };
  const ids = await IdQueue.join(queue, { redis, unavailableMs });
  const retries = new RetryQueue({ ...options, name: queue });
  const scheduler = new Scheduler({ ...options, name: queue });
  const admin = new Admin({ ...options, queue });
  const producer = scene.producer();
  await Promise.all([retries.counts(), scheduler.counts(), admin.counts()]);
  await cover('no');
  await operator.at(owner).cluster('DELSLOTS', slot);
  // Refused where it is back already.
  const back = () =>
    operator
      .at(owner)
      .cluster('ADDSLOTS', slot)
      .catch(() => {});
  onTestFinished(async () => {
    await back();
    await cover('yes');
    await Promise.all([retries.close(), scheduler.close(), admin.close(), ids.close()]);
  });

  const hasty = scene.notifier({ unavailableMs });
  const calls = {
    submit: () => producer.submit([1], { id: `${queue}.r`, unavailableMs }),
    counts: () => admin.counts(),
    workers: () => admin.workers(),
    'status of an id that is not there': () => hasty.status(`${queue}.none`),
    'cancel of one': () => admin.cancel(`${queue}.none`),
    'pause of the queue': () => admin.pauseQueue(),
    'put of a retry queue': () => retries.put(1),
    'enqueue of a scheduler': () => scheduler.enqueue(1, Date.now()),
    'take of a scheduler': () => scheduler.takeDue(),
    'add to a queue of ids': () => ids.add('a'),
    'pull from a queue of ids': () => ids.pull(),
  };
  const refusals = await Promise.all(
    Object.entries(calls).map(async ([what, call]) => [what, await clearRefusalOf(call)] as const),
  );
  for (const [what, refusal] of refusals) {
    expect(refusal, `${what}: ${refusal}`).toBeInstanceOf(ServerError);
    expect(refusal, what).toMatchObject({ code: 'CLUSTER_DOWN', retryable: true });
  }
  // Of that slot as well.
  const late = await refusalOf(scene.notifier().completion(queue, { timeoutMs: 3_000 }));
  expect(late).toBeInstanceOf(TimeoutError);
  expect(late).toMatchObject({ cause: { code: 'CLUSTER_DOWN' } });
  expect(late.message).toMatch(/not within 3000 ms; .*CLUSTERDOWN/);

  // Nor does it keep anybody from hearing of the others, as one who connects when all have heard of it.
  const others = nodes.filter(({ id }) => id !== owner.id);
  await Promise.all(others.map((node) => operator.at(node).cluster('DELSLOTS', slot)));
  const fresh = Connection.open(redis);
  onTestFinished(() => fresh.close());
  await fresh.check();
  const heard: string[] = [];
  const onNotice = (_: string, message: string) => void heard.push(message);
  const subscriber = new Subscriber(fresh, {
    onNotice,
    onMaybeMissed: () => {},
    onError: () => {},
  });
  onTestFinished(() => subscriber.close());
  const elsewhere = `notice:{${queue}.elsewhere}`;
  for (const channel of [`notice:{${queue}}`, elsewhere]) subscriber.add(channel);
  await until(async () => {
    await fresh.client.spublish(elsewhere, 'hello');
    return heard.includes('hello');
  });

  const patient = producer.submit(numbers(3), { id: `${queue}.p` });
  await back();
  await scene.worker(() => {}, { concurrency: 1 });
  await scene.allRight([await patient]);
});

test('a slot that was taken from a server that hangs', { timeout: 240_000 }, async () => {
  // Without replicas nobody replaces it, and it stays in the map.
  const cluster = await startCluster({ password: '', masters: 3, replicasPerMaster: 0 });
  onTestFinished(() => cluster.close());
  const nodes = cluster.nodes.map(({ host, port }) => ({ host, port }));
  const operator = new ClusterOperator(nodes);
  onTestFinished(() => operator.close());
  const queue = 'hangs';
  const slot = await operator.slotOf(queue);
  const owner = await operator.masterOf(slot);
  const others = (await operator.nodes()).filter(({ id }) => id !== owner.id);
  for (const node of await operator.nodes())
    await operator.at(node).config('SET', 'cluster-require-full-coverage', 'no');
  // No limit for an answer: the call ends because it is seen to be astray, or not at all.
  const options = { redisOptions: { commandTimeout: 600_000 } };
  const connection = Connection.open({ nodes, options });
  onTestFinished(() => connection.close());
  await connection.check();
  const [{ id: heir = '' } = {}] = others;
  const info = await operator.at(owner).info('server');
  const pid = Number(/process_id:(\d+)/.exec(info)?.[1]);
  process.kill(pid, 'SIGSTOP');
  onTestFinished(() => void process.kill(pid, 'SIGCONT'));
  const request = new RequestCommands(connection, queue);
  const asked = new Patience(connection, queue, { forMs: 600_000 }).call(() => request.state());
  for (const node of others) await operator.at(node).cluster('SETSLOT', slot, 'NODE', heir);
  expect(await asked).toBeNull();
});

test('a server that is a little late to say that a slot has gone keeps its connections', async () => {
  const { connection, operator, queue, request } = await moving();
  const slot = await operator.slotOf(queue);
  const client = connection.client as Cluster;
  const lost: unknown[] = [];
  client.on('-node', (gone) => void lost.push(gone));
  const moved = async () => {
    lost.length = 0;
    const owner = await operator.masterOf(slot);
    const masters = (await operator.nodes()).filter(({ role }) => role === 'master');
    const heir = masters.find(({ id }) => id !== owner.id);
    const node = client.nodes('master').find(({ options: { port } }) => port === owner.port);
    // What is behind this on the same connection is answered when it is over; with no such replica, in 700 ms.
    const began = performance.now();
    const waited = node?.call('WAIT', 9, 700);
    const asked = request(queue).state();
    for (const one of masters)
      await operator.at(one).cluster('SETSLOT', slot, 'NODE', heir?.id as string);
    await until(async () => {
      await connection.refreshSlots();
      return !connection.knownAddressOf(queue)?.endsWith(`:${owner.port}`);
    });
    for (let i = 0; i < 5; i += 1) await connection.refreshSlots();
    const state = await asked;
    const lateMs = performance.now() - began;
    await waited?.catch(() => {});
    return { state, lateMs, lost: lost.length };
  };
  // A machine that stood still meanwhile made it more than a little.
  const seen = await until(async () => {
    const one = await moved();
    return one.lateMs < 1_000 && one;
  });
  expect(seen).toMatchObject({ state: null, lost: 0 });
});

test('a client that is passed in is listened to once, however many use it', async () => {
  const { redis, queue } = await moving();
  const client = new Cluster(redis.nodes);
  onTestFinished(() => client.disconnect());
  for (const shards of [1, 16]) {
    const worker = new Worker({ redis: client, queue, shards, handler: () => {} });
    await worker.start();
    await worker.close();
    expect(client.listenerCount('refresh')).toBe(1);
  }
});

test('a cancellation is not held up by a server of the queue that hangs', async () => {
  const scene = await moving();
  const { operator, redis, queue } = scene;
  const away = await operator.masterOf(await operator.slotOf(queue));
  const id = await nameThere(operator, `${queue}.c`, (master) => master !== away.id);
  const held = gate();
  await scene.worker(() => held.opened, { concurrency: 1 });
  await scene.producer().submit(numbers(3), { id });
  await until(() => scene.runs.size === 1);
  // A client of somebody else, who sets no limit for an answer.
  const client = new Cluster(redis.nodes);
  onTestFinished(() => client.disconnect());
  await using admin = new Admin({ redis: client, queue, unavailableMs });
  await admin.counts();
  let hangs = true;
  const asleep = operator.at(away).duplicate();
  onTestFinished(() => asleep.disconnect());
  await asleep.ping();
  const slept = asleep.call('DEBUG', 'SLEEP', '8').finally(() => {
    hangs = false;
  });
  // What is left to do the agenda does.
  await expect(admin.cancel(id)).rejects.toMatchObject({ code: 'INDETERMINATE' });
  expect(hangs).toBe(true);
  held.open();
  await slept;
  // Its server has been replaced meanwhile, perhaps; and two audits find what the other one forgot.
  await until(async () => (await scene.request(id).state())?.status === 'complete', {
    timeoutMs: 60_000,
  });
});
