/**
 * A submission that fits into one chunk: created, filled and sealed in one round trip.
 * @module-tag one-server
 */
import {
  type Argument,
  createField,
  firstToken,
  type RequestCommands,
  RequestExistsError,
} from '@piecework/protocol';
import { Redis } from 'ioredis';
import { beforeAll, describe, expect } from 'vitest';
import { buildScripts } from '../../scripts/lua-source.mjs';
import { type Flow, numbers, test } from '../support/flow.js';
import { connected, fieldsOf, given, items } from '../support/given.js';

// Opened before the first test counts its connections.
beforeAll(async () => (await connected()).check());

type Answers = [Error | null, unknown][];

const shas = new Map(Object.entries(buildScripts()).map(([name, { sha }]) => [sha, name]));
const broken = () => new Error('Connection is closed.');

/** A client that notes its round trips, and may cut a pipeline off or refuse a script. */
class Noting extends Redis {
  readonly trips: string[] = [];
  /** Of the next pipeline, so many commands arrive, and of so many the answer comes back. */
  cut: { readonly arrive: number; readonly answered: number } | undefined;
  refused: string | undefined;

  override sendCommand(
    ...[command, stream]: Parameters<Redis['sendCommand']>
  ): ReturnType<Redis['sendCommand']> {
    const script = command.name === 'evalsha' && shas.get(String(command.args[0]));
    if (script && !stream) this.trips.push(script);
    if (!script || script !== this.refused) return super.sendCommand(command, stream);
    command.reject(broken());
    return command.promise;
  }

  override pipeline(...[commands]: Parameters<Redis['pipeline']>): ReturnType<Redis['pipeline']> {
    const all = commands as unknown[][];
    const { cut } = this;
    this.cut = undefined;
    this.trips.push(all.map(([, sha]) => shas.get(String(sha))).join('+'));
    const isRefused = ([, sha]: unknown[]) =>
      this.refused !== undefined && shas.get(String(sha)) === this.refused;
    if (!cut && !all.some(isRefused)) return super.pipeline(commands);
    const { arrive, answered } = cut ?? { arrive: all.length, answered: all.length };
    const exec = async () => {
      const sent = all.slice(0, arrive).filter((one) => !isRefused(one));
      const done = sent.length > 0 ? ((await super.pipeline(sent).exec()) as Answers) : [];
      const told = new Map(sent.map((one, i) => [one, done[i]]));
      return all.map((one, i) => (i < answered && told.get(one)) || [broken(), undefined]);
    };
    return { exec } as unknown as ReturnType<Redis['pipeline']>;
  }
}

function noting(flow: Flow): Noting {
  const client = new Noting(flow.redis as string, { protocol: 2 });
  flow.after(() => client.disconnect());
  return client;
}

/** The tokens of a request that wait in its list. */
async function tokensOf(flow: Flow, id: string): Promise<string[]> {
  const tokens = await flow.connection.client.lrange(flow.queueCommands.keys.list(50), 0, -1);
  return tokens.filter((token) => token.startsWith(`${id}~`));
}

async function payloadsOf(flow: Flow, id: string): Promise<unknown[]> {
  const rows = await flow.connection.client.xrange(flow.request(id).keys.work, '-', '+');
  return rows.map(([, [, payload = '']]) => JSON.parse(payload));
}

describe('a small submission', () => {
  test('takes two round trips; what is not small takes its time', async ({ flow }) => {
    const redis = noting(flow);
    const producer = flow.producer({ redis });
    await producer.submit(numbers(501), { id: flow.id('large') });
    const sendsAtOnce = async (name: string, count: number, options = {}) => {
      redis.trips.length = 0;
      const id = flow.id(name);
      expect(await producer.submit(numbers(count), { id, ...options })).toMatchObject({ id });
      expect(await payloadsOf(flow, id)).toEqual(numbers(count));
      expect(await flow.request(id).state()).toMatchObject({ status: 'sealed', total: count });
      const all = redis.trips.filter((trip) => trip !== 'tick').join(' ');
      return all === 'intent create+append+seal+push';
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

  test('is run like any other', async ({ flow }) => {
    await flow.worker({ handler: (n: number) => n }).start();
    const { id } = await flow.producer().submit(numbers(20), { limit: 3 });
    expect(await flow.complete(id)).toMatchObject({ total: 20, succeeded: 20 });
    expect((await flow.results(id)).size).toBe(20);
  });

  test('does nothing to the request of somebody else that it meets', async ({ flow }) => {
    // Both opened the id, so that the generation is the same: only create tells them apart.
    const scene = await given.created({ queue: flow.queue, producerLeaseMs: 60_000 });
    const { id, generation, request } = scene;
    const before = await flow.connection.client.hgetall(request.keys.request);
    const fields: Argument[] = [...fieldsOf({}, flow.queue), ...createField('other')];
    const whole = { generation, owner: 'other', leaseMs: 1_000, fields, payloads: items(3) };
    expect(await request.createAllIn(whole)).toBeUndefined();
    const submitting = flow.producer().submit(numbers(3), { id });
    await expect(submitting).rejects.toBeInstanceOf(RequestExistsError);
    expect(await flow.connection.client.hgetall(request.keys.request)).toEqual(before);
    expect(await payloadsOf(flow, id)).toEqual([]);
    await request.seal(generation, 'maker', 0);
    await scene.queue.finish(id, generation, 'succeeded');
  });

  test('is one request, whoever asks for it again, and however many at once', async ({ flow }) => {
    const id = flow.id('crowd');
    const submit = () => flow.producer().submit(numbers(7), { id });
    const first = await Promise.all(numbers(5).map(submit));
    // At once, some may have found it unknown; the tokens of those that came too late are surplus.
    const most = (await tokensOf(flow, id)).length;
    expect(most).toBeGreaterThan(0);
    for (const one of [...first, await submit(), await submit()])
      expect(one).toMatchObject({ id, generation: first[0]?.generation, total: 7 });
    expect(await payloadsOf(flow, id)).toEqual(numbers(7));
    const other = flow.producer().submit(numbers(6), { id });
    await expect(other).rejects.toBeInstanceOf(RequestExistsError);
    // An id that is known gets no token on suspicion, or they would pile up while no worker is there.
    expect(await tokensOf(flow, id)).toHaveLength(most);
    await flow.worker({ handler: (n: number) => n }).start();
    expect(await flow.complete(id)).toMatchObject({ total: 7, succeeded: 7 });
  });

  test('pushes exactly the token that it counts', async ({ flow }) => {
    const redis = noting(flow);
    const producer = flow.producer({ redis });
    const counts = async (id: string) => {
      const { client } = flow.connection;
      return client.hmget(flow.request(id).keys.request, 'out', 'outBefore', 'epoch', 'granted');
    };
    for (const [count, limit] of [
      [1, 1],
      [40, 1],
      [400, 400],
    ] as const) {
      redis.trips.length = 0;
      const { id, generation } = await producer.submit(numbers(count), { limit });
      expect(redis.trips.filter((trip) => trip !== 'tick')).toHaveLength(2);
      expect(await counts(id)).toEqual(['1', '0', '1', '0']);
      expect(await tokensOf(flow, id)).toEqual([`${id}~${generation}~1`]);
    }
  });

  test('leaves to be pushed what is minted otherwise', async ({ flow }) => {
    const { queueCommands: queue } = flow;
    const left = async (name: string, priority: number) => {
      const request = flow.request(flow.id(name));
      const { id } = request.keys;
      const generation = await queue.intent(id);
      const fields: Argument[] = [...fieldsOf({ priority: 50 }, flow.queue), ...createField('it')];
      const whole = { generation, owner: 'it', leaseMs: 60_000, fields, payloads: ['1'] };
      const allIn = await request.createAllIn(
        whole,
        firstToken(queue, { id, generation, priority }),
      );
      if (allIn) await queue.push({ id, generation, ...allIn });
      return allIn?.mint;
    };
    expect(await left('foretold', 50)).toBe(0);
    expect(await left('elsewhere', 49)).toBe(1);
    await flow.worker({ handler: (n: number) => n }).start();
    for (const name of ['foretold', 'elsewhere'])
      expect(await flow.complete(flow.id(name))).toMatchObject({ succeeded: 1 });
  });

  test('tells nobody before its time, and waits in no lane before it is due', async ({ flow }) => {
    const redis = noting(flow);
    const producer = flow.producer({ redis });
    for (const options of [{ delayMs: 60_000 }, { expedite: true, runAt: 5 }]) {
      redis.trips.length = 0;
      await producer.submit([1], options);
      expect(redis.trips.join(' ')).not.toContain('+push');
    }
  });

  test('that is refused leaves a token that harms nobody', async ({ flow }) => {
    // Both opened the id, so the token that came for nothing is one of the request that is there.
    const scene = await given.created({ queue: flow.queue, limit: 2, producerLeaseMs: 60_000 });
    const { id, generation, request, queue } = scene;
    const fields: Argument[] = [...fieldsOf({}, flow.queue), ...createField('other')];
    const parts = { owner: 'other', leaseMs: 1_000, fields, payloads: items(3) };
    const refused = (of: RequestCommands, life: number) =>
      of.createAllIn(
        { ...parts, generation: life },
        firstToken(queue, { id: of.keys.id, generation: life, priority: 50 }),
      );
    for (let i = 0; i < 3; i += 1) expect(await refused(request, generation)).toBeUndefined();
    expect(await tokensOf(flow, id)).toHaveLength(3);
    await request.append(generation, 'maker', 0, numbers(6).map(String));
    await request.seal(generation, 'maker', 6);
    // And of a life that never began, as the one before is still kept.
    const { id: old } = await flow.producer().submit([], { id: flow.id('old') });
    const next = await queue.intent(old);
    expect(await refused(flow.request(old), next)).toBeUndefined();
    await queue.finish(old, next, 'gone');
    expect(await tokensOf(flow, old)).toHaveLength(1);
    let [running, most] = [0, 0];
    const handler = async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    };
    await flow.worker({ handler, concurrency: 10 }).start();
    expect(await flow.complete(id)).toMatchObject({ total: 6, succeeded: 6 });
    expect(most).toBeLessThanOrEqual(2);
    expect(await tokensOf(flow, old)).toEqual([]);
  });

  test('is carried through wherever its pipeline is cut off', async ({ flow }) => {
    const redis = noting(flow);
    const producer = flow.producer({ redis });
    const ids: string[] = [];
    for (let arrive = 0; arrive <= 4; arrive += 1) {
      for (let answered = 0; answered <= Math.min(arrive, 3); answered += 1) {
        const id = flow.id(`${arrive}-${answered}`);
        redis.cut = { arrive, answered };
        expect(await producer.submit(numbers(4), { id })).toMatchObject({ id, total: 4 });
        expect(redis.cut).toBeUndefined();
        expect(await payloadsOf(flow, id)).toEqual(numbers(4));
        expect(await flow.request(id).state()).toMatchObject({ status: 'sealed', total: 4 });
        // Counted, and the answer that says so lost: the epochs find it.
        const missed = arrive >= 2 && arrive <= 3 && answered >= 1 && answered <= 2;
        expect((await tokensOf(flow, id)).length > 0).toBe(!missed);
        if (!missed) ids.push(id);
      }
    }
    await flow.worker({ handler: (n: number) => n }).start();
    for (const id of ids) expect(await flow.complete(id)).toMatchObject({ total: 4, succeeded: 4 });
  });

  test('is carried through by a server that has lost the scripts', {
    tags: 'own-server',
  }, async ({ flow }) => {
    const redis = noting(flow);
    const producer = flow.producer({ redis });
    await (flow.connection.client as Redis).script('FLUSH');
    const { id, total } = await producer.submit(numbers(3));
    expect(total).toBe(3);
    expect(await payloadsOf(flow, id)).toEqual(numbers(3));
  });

  test('is announced by a server that knew only some of the scripts', {
    tags: 'own-server',
  }, async ({ flow }) => {
    const redis = noting(flow);
    const producer = flow.producer({ redis });
    const scripts = buildScripts();
    const known = ['create', 'append', 'seal', 'push'] as const;
    for (const unknown of known) {
      const id = flow.id(`without-${unknown}`);
      await (flow.connection.client as Redis).script('FLUSH');
      for (const name of known)
        if (name !== unknown)
          await (flow.connection.client as Redis).script('LOAD', scripts[name].lua);
      expect(await producer.submit(numbers(3), { id })).toMatchObject({ total: 3 });
      expect(await payloadsOf(flow, id)).toEqual(numbers(3));
      expect(await tokensOf(flow, id)).not.toEqual([]);
    }
  });

  test('is in although its token could not be pushed, but nobody says so before the queue has it', async ({
    flow,
  }) => {
    const redis = noting(flow);
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
