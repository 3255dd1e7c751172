/**
 * Readers of a request whose server shows another life of its id: an earlier one, as a server does that comes back from a
 * snapshot, or a later one, of somebody who dropped the request and submitted the id again. The notices are lost.
 * @module-tag one-server
 */
import { Notifier } from '@piecework/notifier';
import { RedriveCommands } from '@piecework/protocol';
import { Redis } from 'ioredis';
import { beforeAll, describe, expect } from 'vitest';
import { type Flow, test } from '../support/flow.js';
import { connected, failure, given, Hand, success } from '../support/given.js';
import { keepRequest } from '../support/lost-writes.js';
import { scriptOf } from '../support/script-names.js';
import { until } from '../support/until.js';

// Opened before the first test counts its connections.
beforeAll(async () => (await connected()).check());

/** A client that counts its calls of one script. */
class Counting extends Redis {
  readonly calls = new Map<string | undefined, number>();

  override sendCommand(
    ...[command, stream]: Parameters<Redis['sendCommand']>
  ): ReturnType<Redis['sendCommand']> {
    const name = scriptOf(command.name, command.args);
    this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
    return super.sendCommand(command, stream);
  }
}

/** A request of four items. `settle`: one succeeds with the name of its life, and one fails; `end`: the others, too. */
async function begin(flow: Flow, id: string, of: string) {
  const scene = await given.sealed({ queue: flow.queue, id, items: 4, limit: 4 });
  const hand = new Hand(scene);
  const entries = await hand.hold(4);
  flow.after(async () => {
    const { id: _, channel: __, ...keys } = scene.request.keys;
    await scene.connection.client.unlink(...Object.values(keys));
    await scene.queue.finish(id, scene.generation, 'dropped');
  });
  const good = (n: number) => success(entries[n]!, JSON.stringify(of));
  return {
    ...scene,
    settle: () => hand.trySettle([good(0), failure(entries[1]!)]),
    end: () => hand.trySettle([good(2), good(3)]),
    keep: () => keepRequest(scene),
  };
}

/** The states of a first life, running and complete, and of a second one that runs; the server shows the second. */
async function lives(flow: Flow, name = 'lives') {
  const id = flow.id(name);
  const first = await begin(flow, id, 'first');
  await first.settle();
  const firstRuns = await first.keep();
  await first.end();
  const firstEnded = await first.keep();
  await first.request.drop(first.generation);
  await first.queue.finish(id, first.generation, 'dropped');
  const second = await begin(flow, id, 'second');
  const secondBegins = await second.keep();
  const redis = new Counting(flow.redis as string, { protocol: 2 });
  const notifier = new Notifier({ redis, queue: flow.queue, sweepMs: 600_000 });
  flow.after(async () => {
    await notifier.close();
    redis.disconnect();
  });
  return { id, redis, notifier, first, second, firstRuns, firstEnded, secondBegins };
}

type Lives = Awaited<ReturnType<typeof lives>>;
type Reader = (notifier: Notifier, id: string, generation: number) => AsyncIterable<unknown>;

async function* once(read: Promise<unknown>) {
  yield await read;
}

const resultsIn =
  (order: 'completion' | 'index'): Reader =>
  (notifier, id, generation) =>
    notifier.results(id, { order, failed: true }, generation);

const READERS: Readonly<Record<string, Reader>> = {
  'results in the order of completion': resultsIn('completion'),
  'results in the order of the items': resultsIn('index'),
  events: (notifier, id, generation) => notifier.events(id, {}, generation),
  progress: (notifier, id, generation) => notifier.progress(id, { everyMs: 20 }, generation),
  failures: (notifier, id, generation) => notifier.failures(id, {}, generation),
  'failure groups': (notifier, id, generation) => once(notifier.failureGroups(id, {}, generation)),
  status: (notifier, id, generation) => once(notifier.status(id, generation)),
  completion: (notifier, id, generation) => once(notifier.completion(id, {}, generation)),
};

/** What a reader hands out from here on, and the code of the error in which it ends. */
function follow(read: Reader, { notifier, id }: Lives, generation: number) {
  const items: unknown[] = [];
  const ended = (async () => {
    for await (const item of read(notifier, id, generation)) items.push(item);
    return 'none';
  })().catch((error: { code: string }) => error.code);
  return { items, ended };
}

test('of two callers who know of different lives of an id, each hears of its own', async ({
  flow,
}) => {
  const all = await lives(flow);
  await all.firstEnded();
  const [ofFirst, ofSecond] = [all.first, all.second].map(({ generation }) =>
    follow(READERS['completion'] as Reader, all, generation),
  );
  expect(await ofSecond?.ended).toBe('LOST');
  expect(await ofFirst?.ended).toBe('none');
  expect(ofFirst?.items).toMatchObject([{ generation: all.first.generation }]);
});

describe('of another life of the id than its caller has seen', { timeout: 20_000 }, () => {
  for (const [name, read] of Object.entries(READERS)) {
    test(`${name}: nothing, whether it is earlier or later`, async ({ flow }) => {
      const all = await lives(flow);
      const { first, second } = all;
      await second.settle();
      const ofLater = follow(read, all, first.generation);
      expect(await ofLater.ended).toBe('LOST');
      expect(ofLater.items).toEqual([]);
      await all.firstRuns();
      const ofEarlier = follow(read, all, second.generation);
      expect(await ofEarlier.ended).toBe('LOST');
      expect(ofEarlier.items).toEqual([]);
    });
  }

  for (const name of ['results in the order of completion', 'results in the order of the items'])
    test(`${name}: nothing, if it comes back while they are read`, async ({ flow }) => {
      for (const seen of ['by the caller', 'by the reader']) {
        const all = await lives(flow, seen.replaceAll(' ', '-'));
        const { redis, second } = all;
        const known = seen === 'by the caller' ? second.generation : 0;
        const reader = follow(READERS[name]!, all, known);
        await until(() => (redis.calls.get('read-results') ?? 0) > 1, { what: 'it reads' });
        await all.firstEnded();
        expect(await reader.ended, seen).toBe('LOST');
        expect(reader.items, seen).toEqual([]);
      }
    });

  test('progress: nothing, if it comes back between two reports', async ({ flow }) => {
    const all = await lives(flow);
    const reader = follow(READERS['progress']!, all, 0);
    await until(() => reader.items.length > 0, { what: 'it reports' });
    await all.firstRuns();
    expect(await reader.ended).toBe('LOST');
    const { generation } = all.second;
    expect(
      reader.items.filter((item) => (item as { generation: number }).generation !== generation),
    ).toEqual([]);
  });

  test('failures: nothing, if it comes back while they are read', async ({ flow }) => {
    const all = await lives(flow);
    await all.second.settle();
    const { redis, id, notifier } = all;
    const sent = redis.sendCommand.bind(redis);
    let cameBack = false;
    redis.sendCommand = (command, stream) => {
      // The read of the failures themselves, behind the scan for their indexes.
      if (command.name !== 'hmget' || cameBack) return sent(command, stream);
      cameBack = true;
      return all.firstEnded().then(() => sent(command, stream));
    };
    const items: unknown[] = [];
    const reading = (async () => {
      for await (const failed of notifier.failures(id)) items.push(failed);
    })();
    await expect(reading).rejects.toMatchObject({ code: 'LOST' });
    expect(cameBack).toBe(true);
    expect(items).toEqual([]);
  });

  test('all, if a redrive began a later generation of the same life', async ({ flow }) => {
    const { id, generation, ...scene } = await begin(flow, flow.id('redriven'), 'first');
    await scene.settle();
    await scene.end();
    const notifier = new Notifier({ redis: flow.redis, queue: flow.queue });
    flow.after(() => notifier.close());
    const redriven = new RedriveCommands(flow.connection, id);
    await redriven.open(generation + 1, 'redriver', 30_000);
    await redriven.runAgain(generation + 1, 'redriver', [1]);
    expect(await notifier.status(id, generation)).toMatchObject({ generation: generation + 1 });
    const items: number[] = [];
    for await (const { index } of notifier.results(id, {}, generation)) {
      items.push(index);
      if (items.length === 3) break;
    }
    expect(items.sort()).toEqual([0, 2, 3]);
  });
});
