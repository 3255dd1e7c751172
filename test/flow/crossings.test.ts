import type { Redis } from 'ioredis';
import { describe, expect } from 'vitest';
import { apart } from '../support/apart.js';
import { type Flow, numbers, test } from '../support/flow.js';
import { TappedRedis } from '../support/tap.js';

/*
 * Between two calls a process may die. What it leaves then has to be such that the agenda finds it:
 * here it is looked at before every call.
 */

/** A client whose calls are looked at; closed when the test is over. */
function tapped(flow: Flow, look: ConstructorParameters<typeof TappedRedis>[1]): TappedRedis {
  if (typeof flow.redis !== 'string') throw new Error('needs one server');
  const client = new TappedRedis(flow.redis, look);
  flow.after(() => client.disconnect());
  return client;
}

/** Tokens of a request that are in its list, and those that its state counts, at one moment. */
async function tokensOf(flow: Flow, id: string, priority: number) {
  const [list, counts] = await atOnce(flow, [
    ['lrange', flow.queueCommands.keys.list(priority), '0', '-1'],
    ['hmget', flow.request(id).keys.request, 'out', 'outBefore'],
  ]);
  const [out, before] = counts as string[];
  return {
    listed: (list as string[]).filter((token) => token.startsWith(`${id}~`)).length,
    counted: Number(out) + Number(before),
  };
}

async function atOnce({ connection }: Flow, commands: string[][]): Promise<unknown[]> {
  const replies = await (connection.client as Redis).multi(commands).exec();
  return (replies ?? []).map(([, reply]) => reply);
}

describe('at every point of a submission', { tags: ['one-server'] }, () => {
  test('what exists of the request is on the agenda', async ({ flow }) => {
    const { keys } = flow.queueCommands;
    const few = ['intent', 'create', 'push'];
    const parts = [...few, 'append', 'seal'];
    // In one call; in a few, as where the sides are apart; and in chunks, as the window is too small for that.
    for (const [id, window, calls] of [
      [flow.id('whole'), 0, ['submit']],
      [flow.id('small'), 0, few],
      [flow.id('submitted'), 11, parts],
    ] as const) {
      const seen: string[] = [];
      const unknown: string[] = [];
      const redis = tapped(flow, async ({ what }) => {
        seen.push(what);
        const state = await flow.request(id).state();
        if (!state) return;
        const [open, agenda, wait] = await atOnce(flow, [
          ['hget', keys.open, id],
          ['zscore', keys.agenda, id],
          ['zscore', keys.wait, id],
        ]);
        const known = Number(open) === state.generation && (agenda ?? wait) !== null;
        if (!known) unknown.push(`before ${what}`);
      });
      const producer = flow.producer({ redis: calls.length > 1 ? apart(redis) : redis });
      await producer.submit(numbers(3), { id, window });
      expect(await flow.request(id).state()).toMatchObject({ status: 'sealed' });
      await producer.close();
      expect(unknown).toEqual([]);
      expect(seen).toEqual(expect.arrayContaining([...calls]));
    }
    await flow.worker({ handler: (n: number) => n }).start();
    for (const name of ['whole', 'small', 'submitted']) await flow.complete(flow.id(name));
  });
});

describe('a token', { tags: ['one-server'] }, () => {
  test('is counted before it can be popped, also when its worker leaves', async ({ flow }) => {
    const ids = [flow.id('one'), flow.id('other')];
    const uncounted: string[] = [];
    const pushes = new Map<string, number>();
    const redis = tapped(flow, async ({ what, args: [id = '', , , count] }) => {
      if ((what !== 'push' && what !== 'exchange') || Number(count) === 0) return;
      pushes.set(what, (pushes.get(what) ?? 0) + 1);
      const { listed, counted } = await tokensOf(flow, id, 50);
      if (listed + Number(count) > counted) uncounted.push(`${what} of ${id}`);
    });
    const producer = flow.producer({ redis });
    // Two that take turns on one slot: each leaves after every sub-request.
    for (const id of ids) await producer.submit(numbers(12), { id, limit: 1, window: 47 });
    const worker = flow.worker({ redis, concurrency: 1, quantumMs: 0, handler: (n: number) => n });
    await worker.start();
    for (const id of ids) expect(await flow.complete(id)).toMatchObject({ succeeded: 12 });
    await Promise.all([worker.close(), producer.close()]);
    expect(uncounted).toEqual([]);
    expect(pushes.get('push')).toBeGreaterThanOrEqual(2);
    expect(pushes.get('exchange')).toBeGreaterThan(4);
  });
});
