/**
 * A submission that fits into one call: one call where one server has both sides, else an intent, a create and a push.
 * @module-tag one-server
 */
import { RequestExistsError, ServerError } from '@piecework/protocol';
import { Command, Redis } from 'ioredis';
import { beforeAll, describe, expect } from 'vitest';
import { buildScripts } from '../../scripts/lua-source.mjs';
import { apart } from '../support/apart.js';
import { type Flow, numbers, test } from '../support/flow.js';
import { connected, create, given, items } from '../support/given.js';
import { payloadsIn } from '../support/payloads.js';

// Opened before the first test counts its connections.
beforeAll(async () => (await connected()).check());

const shas = new Map(Object.entries(buildScripts()).map(([name, { sha }]) => [sha, name]));
const broken = () => new Error('Connection is closed.');

/** A client that notes its round trips, and may lose a reply or refuse a script. */
class Noting extends Redis {
  readonly trips: string[] = [];
  /** The next call of this script is carried out and its reply lost, behind `meanwhile`; then it is sent again. */
  lose: { readonly script: string; readonly meanwhile?: () => Promise<void> } | undefined;
  refused: string | undefined;
  refuses = (script: string): boolean => script === this.refused;

  override sendCommand(
    ...[command, stream]: Parameters<Redis['sendCommand']>
  ): ReturnType<Redis['sendCommand']> {
    const script = command.name === 'evalsha' && shas.get(String(command.args[0]));
    if (script && !stream) this.trips.push(script);
    const { lose } = this;
    if (lose && script === lose.script) {
      this.lose = undefined;
      return this.#again(command, lose.meanwhile);
    }
    if (!script || !this.refuses(script)) return super.sendCommand(command, stream);
    command.reject(broken());
    return command.promise;
  }

  async #again(command: Command, meanwhile = async () => {}) {
    await super.sendCommand(new Command('evalsha', command.args.map(String)));
    await meanwhile();
    return super.sendCommand(command);
  }
}

function noting(flow: Flow): Noting {
  const client = new Noting(flow.redis as string, { protocol: 2 });
  flow.after(() => client.disconnect());
  return client;
}

/** The same of a server that refuses scripts for both sides. */
const notingApart = (flow: Flow): Noting => apart(noting(flow));

/** Round trips of the scripts that write for submissions. */
const tripsOf = ({ trips }: Noting) =>
  trips.filter((trip) => trip !== 'tick' && trip !== 'read-state').join(' ');

/** The tokens of a request that wait in its list. */
async function tokensOf(flow: Flow, id: string): Promise<string[]> {
  const tokens = await flow.connection.client.lrange(flow.queueCommands.keys.list(50), 0, -1);
  return tokens.filter((token) => token.startsWith(`${id}~`));
}

const payloadsOf = (flow: Flow, id: string): Promise<unknown[]> =>
  payloadsIn(flow.connection.client, flow.request(id).keys);

describe('a small submission', () => {
  test('takes one round trip; one that is not small takes more', async ({ flow }) => {
    const redis = noting(flow);
    const producer = flow.producer({ redis });
    await producer.submit(numbers(501), { id: flow.id('large') });
    const sendsAtOnce = async (name: string, count: number, options = {}) => {
      redis.trips.length = 0;
      const id = flow.id(name);
      expect(await producer.submit(numbers(count), { id, ...options })).toMatchObject({ id });
      expect(await payloadsOf(flow, id)).toEqual(numbers(count));
      expect(await flow.request(id).state()).toMatchObject({ status: 'sealed', total: count });
      return tripsOf(redis) === 'submit';
    };
    expect(await sendsAtOnce('one', 1)).toBe(true);
    expect(await sendsAtOnce('500', 500)).toBe(true);
    expect(await sendsAtOnce('501', 501)).toBe(false);
    expect(await sendsAtOnce('wide', 5, { window: 20 })).toBe(true);
    expect(await sendsAtOnce('narrow', 5, { window: 19 })).toBe(false);
    const [id, text] = [flow.id('big'), 'x'.repeat(600_000)];
    redis.trips.length = 0;
    await producer.submit([text, text], { id });
    expect(redis.trips).toContain('create');
  });

  test('takes three where no script may touch both sides', async ({ flow }) => {
    const redis = notingApart(flow);
    const producer = flow.producer({ redis });
    for (const name of ['first', 'second']) {
      redis.trips.length = 0;
      const { id } = await producer.submit(numbers(4), { id: flow.id(name) });
      expect(await payloadsOf(flow, id)).toEqual(numbers(4));
      expect(await tokensOf(flow, id)).toHaveLength(1);
      expect(tripsOf(redis)).toBe('intent create push');
    }
    redis.trips.length = 0;
    const { id } = await producer.submit([1], { delayMs: 9_000, deadlineMs: 60_000 });
    expect(tripsOf(redis)).toBe('intent create push schedule-tend');
    const { client } = flow.connection;
    const [tendAt, { heldUntil }] = await Promise.all([
      client.zscore(flow.queueCommands.keys.agenda, id),
      flow.request(id).fields('heldUntil'),
    ]);
    expect(tendAt).toBe(heldUntil);
    expect(await tokensOf(flow, id)).toEqual([]);
  });

  test('shares its call with those of its turn that have the same options', async ({ flow }) => {
    const redis = noting(flow);
    const producer = flow.producer({ redis });
    await producer.submit([0]);
    redis.trips.length = 0;
    const limits = numbers(30).map((n) => (n % 6 === 5 ? 3 : 2));
    const all = await Promise.all(limits.map((limit, n) => producer.submit([n, n], { limit })));
    expect(tripsOf(redis)).toBe('submit submit');
    expect(new Set(all.map(({ id }) => id)).size).toBe(30);
    for (const [n, { id, created, generation }] of all.entries()) {
      expect(created).toBe(true);
      expect(await payloadsOf(flow, id)).toEqual([n, n]);
      expect((await flow.request(id).fields('limit')).limit).toBe(String(limits[n]));
      expect(await flow.request(id).state()).toMatchObject({ status: 'sealed', generation });
    }
    redis.trips.length = 0;
    const text = 'x'.repeat(300_000);
    // More than one call carries: of the requests, of the items, of the bytes.
    await Promise.all(numbers(26).map((n) => producer.submit([n])));
    await Promise.all(numbers(2).map(() => producer.submit(numbers(251))));
    await Promise.all(numbers(4).map(() => producer.submit([text])));
    expect(tripsOf(redis)).toBe('submit submit submit submit submit submit');
    await flow.worker({ handler: (n: number) => n }).start();
    for (const { id } of all) expect(await flow.complete(id)).toMatchObject({ succeeded: 2 });
  });

  test('that is submitted twice in one turn is one request', async ({ flow }) => {
    const producer = flow.producer();
    const id = flow.id('twice');
    const both = await Promise.all(numbers(2).map(() => producer.submit([1, 2], { id })));
    expect(both.map(({ created }) => created).sort()).toEqual([false, true]);
    expect(both[0]?.generation).toBe(both[1]?.generation);
    expect(await payloadsOf(flow, id)).toEqual([1, 2]);
  });

  test('that the server refuses refuses no other of its turn', async ({ flow }) => {
    const producer = flow.producer();
    const ids = ['good', 'bad', 'fine'].map((name) => flow.id(name));
    const { client } = flow.connection;
    await client.sadd(flow.request(ids[1] as string).keys.request, 'no hash');
    const all = await Promise.allSettled(ids.map((id) => producer.submit([1], { id })));
    expect(all.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect((all[1] as PromiseRejectedResult).reason).toBeInstanceOf(ServerError);
    for (const id of [ids[0], ids[2]] as string[]) expect(await payloadsOf(flow, id)).toEqual([1]);
    await client.del(flow.request(ids[1] as string).keys.request);
  });

  test('is one request in a fleet whose processes submit in both ways', async ({ flow }) => {
    const ways = [noting(flow), notingApart(flow)];
    const producers = ways.map((redis) => flow.producer({ redis }));
    for (let round = 0; round < 10; round += 1) {
      const id = flow.id(`${round}`);
      const submit = (way: number) => producers[way]?.submit(numbers(3), { id });
      const order = round % 2 === 0 ? [0, 1] : [1, 0];
      // At the same time, then once more by each.
      const together = await Promise.all(order.map(submit));
      const all = [...together, await submit(0), await submit(1)];
      expect(new Set(all.map((one) => one?.generation)).size).toBe(1);
      expect(all.map((one) => one?.total)).toEqual([3, 3, 3, 3]);
      expect(all.filter((one) => one?.created)).toHaveLength(1);
      expect(await payloadsOf(flow, id)).toEqual(numbers(3));
      const other = producers[round % 2]?.submit(numbers(4), { id });
      await expect(other).rejects.toBeInstanceOf(RequestExistsError);
    }
    await flow.worker({ handler: (n: number) => n }).start();
    for (let round = 0; round < 10; round += 1)
      expect(await flow.complete(flow.id(`${round}`))).toMatchObject({ succeeded: 3 });
  });

  test('is continued by either way where another process left it half done', async ({ flow }) => {
    for (const [way, client] of [
      ['whole', noting(flow)],
      ['parts', notingApart(flow)],
    ] as const) {
      for (let done = 0; done <= 2; done += 1) {
        const redis = notingApart(flow);
        const id = flow.id(`${way}-${done}`);
        const options = { id, unavailableMs: 0 };
        const calls = ['intent', 'create', 'push'] as const;
        // Another process got as far as this.
        redis.refused = calls[done];
        const cut = new Set(calls.slice(done));
        redis.refuses = (script) => cut.has(script as (typeof calls)[number]);
        await flow
          .producer({ redis })
          .submit(numbers(3), options)
          .catch(() => undefined);
        const again = await flow.producer({ redis: client }).submit(numbers(3), options);
        expect(again).toMatchObject({ id, total: 3 });
        expect(await payloadsOf(flow, id)).toEqual(numbers(3));
        expect(await flow.request(id).state()).toMatchObject({ status: 'sealed', total: 3 });
      }
    }
  });

  test('is run like any other', async ({ flow }) => {
    await flow.worker({ handler: (n: number) => n }).start();
    const { id } = await flow.producer().submit(numbers(20), { limit: 3 });
    expect(await flow.complete(id)).toMatchObject({ total: 20, succeeded: 20 });
    expect((await flow.results(id)).size).toBe(20);
  });

  test('does not change another request that has its id', async ({ flow }) => {
    // Both opened the id, so that the generation is the same: only create tells them apart.
    const scene = await given.created({ queue: flow.queue, producerLeaseMs: 60_000 });
    const { id, generation, request } = scene;
    const before = await flow.connection.client.hgetall(request.keys.request);
    const other = { owner: 'other', producerLeaseMs: 1_000 };
    expect(await create(scene, other, { items: items(3) })).toMatchObject({ verdict: 'exists' });
    const submitting = flow.producer().submit(numbers(3), { id });
    await expect(submitting).rejects.toBeInstanceOf(RequestExistsError);
    expect(await flow.connection.client.hgetall(request.keys.request)).toEqual(before);
    expect(await payloadsOf(flow, id)).toEqual([]);
    await request.seal(generation, 'maker', 0);
    await scene.queue.finish(id, generation, 'succeeded');
  });

  test('is one request, however often it is repeated, also at the same time', async ({ flow }) => {
    const id = flow.id('crowd');
    const submit = () => flow.producer().submit(numbers(7), { id });
    const first = await Promise.all(numbers(5).map(submit));
    expect(await tokensOf(flow, id)).toHaveLength(1);
    for (const one of [...first, await submit(), await submit()])
      expect(one).toMatchObject({ id, generation: first[0]?.generation, total: 7 });
    expect(await payloadsOf(flow, id)).toEqual(numbers(7));
    const other = flow.producer().submit(numbers(6), { id });
    await expect(other).rejects.toBeInstanceOf(RequestExistsError);
    // Or they would pile up while no worker is there.
    expect(await tokensOf(flow, id)).toHaveLength(1);
    await flow.worker({ handler: (n: number) => n }).start();
    expect(await flow.complete(id)).toMatchObject({ total: 7, succeeded: 7 });
  });

  test('pushes exactly the token that it counts', async ({ flow }) => {
    const redis = noting(flow);
    const producer = flow.producer({ redis });
    const counts = async (id: string) =>
      Object.values(await flow.request(id).fields('out', 'outBefore', 'epoch', 'granted'));
    for (const [count, limit] of [
      [1, 1],
      [40, 1],
      [400, 400],
    ] as const) {
      redis.trips.length = 0;
      const { id, generation } = await producer.submit(numbers(count), { limit });
      expect(tripsOf(redis)).toBe('submit');
      expect(await counts(id)).toEqual(['1', '0', '1', '0']);
      expect(await tokensOf(flow, id)).toEqual([`${id}~${generation}~1`]);
    }
  });

  test('shows no token before its time, and waits in the lane once it is due', async ({ flow }) => {
    const producer = flow.producer();
    const { id: later } = await producer.submit([1], { delayMs: 60_000 });
    expect(await tokensOf(flow, later)).toEqual([]);
    const { id, generation } = await producer.submit([1], { expedite: true, runAt: 5 });
    expect(await tokensOf(flow, id)).toEqual([]);
    const { client } = flow.connection;
    const lane = await client.lrange(flow.queueCommands.keys.lane(50), 0, -1);
    expect(lane).toContain(`${id}~${generation}~1~5`);
  });

  test('is in once when its reply is lost, whatever comes of it meanwhile', async ({ flow }) => {
    const redis = noting(flow);
    const producer = flow.producer({ redis });
    const worker = flow.worker({ handler: (n: number) => n });
    for (const [name, meanwhile] of [
      ['nothing', async () => {}],
      ['worked-off', async (id: string) => void (await flow.complete(id))],
    ] as const) {
      const id = flow.id(name);
      if (name === 'worked-off') await worker.start();
      redis.lose = { script: 'submit', meanwhile: () => meanwhile(id) };
      const { created, total } = await producer.submit(numbers(3), { id });
      expect({ created, total }).toEqual({ created: true, total: 3 });
      expect(redis.lose).toBeUndefined();
      expect(await flow.request(id).state()).toMatchObject({ total: 3 });
    }
  });

  test('has its token at once, whichever reply was lost where the sides are apart', async ({
    flow,
  }) => {
    const redis = notingApart(flow);
    const producer = flow.producer({ redis });
    for (const script of ['intent', 'create', 'push']) {
      const id = flow.id(script);
      redis.lose = { script };
      const submitted = await producer.submit(numbers(4), { id });
      expect(submitted).toMatchObject({ id, created: true, total: 4 });
      expect(redis.lose).toBeUndefined();
      expect(await payloadsOf(flow, id)).toEqual(numbers(4));
      expect(await flow.request(id).state()).toMatchObject({ status: 'sealed', total: 4 });
      expect(await tokensOf(flow, id)).not.toEqual([]);
    }
    await flow.worker({ handler: (n: number) => n }).start();
    for (const script of ['intent', 'create', 'push'])
      expect(await flow.complete(flow.id(script))).toMatchObject({ total: 4, succeeded: 4 });
  });

  test('is completed by a server that has lost the scripts', {
    tags: 'own-server',
  }, async ({ flow }) => {
    for (const redis of [noting(flow), notingApart(flow)]) {
      await (flow.connection.client as Redis).script('FLUSH');
      const { id, total } = await flow.producer({ redis }).submit(numbers(3));
      expect(total).toBe(3);
      expect(await payloadsOf(flow, id)).toEqual(numbers(3));
    }
  });

  test('is in although its token could not be pushed, and is acknowledged only when the queue has it', async ({
    flow,
  }) => {
    const redis = notingApart(flow);
    redis.refused = 'push';
    const id = flow.id('unannounced');
    const options = { id, unavailableMs: 0 };
    await expect(flow.producer({ redis }).submit([1], options)).rejects.toMatchObject({
      code: 'INDETERMINATE',
    });
    const request = flow.request(id);
    expect(await flow.connection.client.hget(request.keys.request, 'out')).toBe('1');
    expect(await request.state()).toMatchObject({ status: 'sealed', total: 1 });
    expect(await flow.producer().submit([1], options)).toMatchObject({ id, total: 1 });
  });
});
