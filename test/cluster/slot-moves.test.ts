/**
 * Hash slots that move from one master to another while their work runs (the classic migration of
 * Redis 7: as long as it lasts, calls on several keys are refused).
 * @module-tag processes
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection, Patience, QueueCommands } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import { expect, onTestFinished, test } from 'vitest';
import { confirmDurability } from '../../packages/producer/src/seal/durability.js';
import { gate, numbers } from '../support/flow.js';
import { moving, nameThere } from '../support/moving.js';
import { until } from '../support/until.js';

const ON_ITS_WAY = /hash slot of the queue is on its way/;

test('while the slot of the queue is on its way, tokens are popped wherever they are', async () => {
  const scene = await moving();
  const { operator, queue } = scene;
  const slot = await operator.slotOf(queue);
  const elsewhere = (name: string) =>
    nameThere(operator, `${queue}.${name}`, (_, it) => it !== slot);
  const begun: string[] = [];
  const first = gate();
  const worker = await scene.worker(
    async (name: string) => {
      begun.push(name);
      if (name === 'first') await first.opened;
    },
    { concurrency: 1 },
  );
  const errors: Error[] = [];
  const back: string[] = [];
  worker.on('error', (error) => void errors.push(error));
  worker.on('reconnected', ({ connection }) => void back.push(connection));
  const producer = scene.producer();
  const submit = async (name: string, priority: number) =>
    producer.submit([name], { id: await elsewhere(name), priority });
  const requests = [await submit('first', 50)];
  await until(() => begun.length === 1);
  requests.push(await submit('stays', 20), await submit('moves', 10), await submit('last', 30));

  const move = await operator.beginMove(slot);
  // Two lists go, the one behind them and all else stays.
  const { host, port } = move.to;
  for (const list of [10, 30]) {
    await operator.at(move.from).call('MIGRATE', host, port, `{${queue}}:${list}`, 0, 5_000);
  }
  first.open();
  await until(() => begun.length === 4, { what: 'all tokens were found' });
  expect(begun).toEqual(['first', 'moves', 'stays', 'last']);
  // Nothing is there to be popped any more; it says why it takes nothing.
  await until(() => ON_ITS_WAY.test(worker.health().why.join()));
  expect(worker.health()).toMatchObject({ live: true, ready: false });
  expect(errors.map(({ message }) => message)).toContainEqual(expect.stringMatching(ON_ITS_WAY));
  const warned = scene.log.lines.filter(({ what }) => ON_ITS_WAY.test(what));
  expect(warned).toHaveLength(1);

  while ((await move.step(1)) > 0);
  await move.finish();
  await until(() => worker.health().ready, { what: 'it takes work from the new master' });
  expect(back).toContain('intake');
  requests.push(await submit('afterwards', 50));
  await scene.allRight(requests);
  expect(scene.ranAgain()).toEqual([]);
});

test('the slot of the queue moves there and back while requests are worked off', async () => {
  const scene = await moving();
  const { operator, queue } = scene;
  const slot = await operator.slotOf(queue);
  const home = await operator.masterOf(slot);
  const workers = [];
  for (let i = 0; i < 2; i += 1) {
    workers.push(await scene.worker(() => sleep(5), { concurrency: 5 }));
  }
  const producer = scene.producer();
  const submissions = numbers(24).map((n) =>
    producer.submit(numbers(10), { priority: n % 3, limit: 3 }),
  );
  await until(() => scene.runs.size > 10);
  for (const to of [undefined, home]) {
    const before = scene.runs.size;
    const move = await operator.beginMove(slot, to);
    while ((await move.step(1)) > 0) await sleep(20);
    await move.finish();
    if (before < 200) await until(() => scene.runs.size > before, { what: 'work goes on' });
  }
  await scene.allRight(await Promise.all(submissions));
  expect(scene.ranAgain()).toEqual([]);
  expect(scene.log.lines.filter(({ level }) => level === 'error')).toEqual([]);
});

test('the slot of a request moves key by key while its work runs', async () => {
  const scene = await moving();
  const { operator, queue } = scene;
  const slot = await operator.slotOf(queue);
  const id = await nameThere(operator, `${queue}.r`, (_, it) => it !== slot);
  const halfMoved = gate();
  // What comes later ends when the slot is on its way, or nothing might be left to be refused.
  const handler = async () => {
    await sleep(10);
    if (scene.runs.size > 8) await halfMoved.opened;
  };
  await scene.worker(handler, { concurrency: 4 });
  const producer = scene.producer();
  const notifier = scene.notifier();
  const open = await producer.open({ id, limit: 4 });
  await open.append(...numbers(40));
  await open.flush();
  const completion = notifier.completion(id);
  completion.catch(() => {});
  await until(() => scene.runs.size >= 8);
  const move = await operator.beginMove(await operator.slotOf(id));
  const refused = async () => {
    const infos = await Promise.all(
      [move.from, move.to].map((node) => operator.at(node).info('errorstats')),
    );
    const counts = infos.map((info) => Number(/TRYAGAIN:count=(\d+)/.exec(info)?.[1] ?? 0));
    return counts.reduce((sum, each) => sum + each);
  };
  const atFirst = await refused();
  for (;;) {
    const before = await refused();
    const left = await move.step(1);
    if (left === 0) break;
    halfMoved.open();
    // A worker's call came into the middle of it.
    await until(async () => (await refused()) > before || scene.runs.size === 40);
  }
  // Appended into the middle: taken when all is there.
  const appended = open.append(...numbers(10, 40)).then(() => open.seal());
  await move.finish();
  await appended;
  expect(await refused()).toBeGreaterThan(atFirst);
  expect(await completion).toMatchObject({ counts: { succeeded: 50 } });
  await scene.allRight([{ id, total: 50 }]);
  expect(scene.ranAgain()).toEqual([]);
});

test('durability is confirmed by the master that has the request by now', async () => {
  const scene = await moving();
  const { operator, queue, redis, request } = scene;
  const id = `${queue}.safe`;
  await scene.producer().submit(numbers(3), { id, durability: 'replica' });
  // It knows the map of now, and looks at it when there is a reason.
  const options = { ...redis.options, slotsRefreshInterval: 0 };
  const connection = Connection.open({ ...redis, options });
  onTestFinished(() => connection.close());
  await connection.check();
  await operator.move(await operator.slotOf(id));
  const {
    generation = '',
    sealedBy = '',
    sent = '',
  } = await request(id).fields('generation', 'sealedBy', 'sent');
  const seal = { generation: Number(generation), producer: sealedBy, sent: Number(sent) };
  const site = {
    ...{ connection, queue: new QueueCommands(connection, queue) },
    request: new RequestCommands(connection, id),
    patience: new Patience(connection, id, { forMs: 30_000 }),
  };
  await confirmDurability(site, seal, 'replica');
});

test('a new master that has never seen a script is sent it', async () => {
  const scene = await moving();
  const { operator, queue } = scene;
  await scene.worker(() => {}, { concurrency: 2 });
  const producer = scene.producer();
  const id = `${queue}.known`;
  const open = await producer.open({ id });
  await open.append(1);
  await open.flush();
  const slot = await operator.slotOf(id);
  const move = await operator.beginMove(slot);
  await operator.at(move.to).script('FLUSH');
  while ((await move.step(10)) > 0);
  await move.finish();
  await operator.at(move.to).script('FLUSH');
  await open.append(2);
  await open.seal();
  await scene.allRight([{ id, total: 2 }]);
});
