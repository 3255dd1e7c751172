/**
 * Makes users and their rights.
 * @module-tag own-server
 */
import {
  Connection,
  ControlCommands,
  type Entry,
  IdQueueCommands,
  QueueCommands,
  QueueControlCommands,
  ReaderCommands,
  RedriveCommands,
  requestKeys,
  type Settled,
  TimedCommands,
  takeWith,
} from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import { Command, Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  buildScript,
  buildScripts,
  parseHeader,
  readSource,
  scriptNames,
  shaOf,
} from '../../scripts/lua-source.mjs';
import { moveClock, useTestClock, withScripts } from '../support/clock.js';
import { settleAll } from '../support/compact.js';
import { expiringWork } from '../support/expiry.js';
import { back, failure, items, LEASE_MS, optionsOf, success } from '../support/given.js';
import type { TestServer } from '../support/providers/provider.js';
import { startOwnRedis } from '../support/redis.js';
import { bodyOf, headOf } from '../support/whole.js';

/*
 * One story in which every script is called and gives every reply that its header lists, told by a
 * user who may touch nothing but the keys that each call declares (and the request's channel). So a
 * script that reaches for another key, which Redis Cluster would forgive as long as the key lies on
 * the same server, fails here. So does a script that lets a key of unfinished work expire.
 */

useTestClock();

const USER = 'storyteller';

/** An ioredis client whose rights are, at each script, the keys of that script. */
class Restricted extends Redis {
  readonly replies = new Map<string, Set<string>>();
  readonly #names = new Map<string[], string>(
    Object.entries(buildScripts({ clock: 'test' })).map(([name, { sha, lua }]) => [
      [sha, lua],
      name,
    ]),
  );
  readonly #admin: Redis;
  readonly #own = new WeakSet<Command>();

  constructor(url: string, admin: Redis) {
    super(url, { lazyConnect: true, username: USER, password: USER });
    this.#admin = admin;
  }

  /** From here on this text too is the script of that name. */
  learn(name: string, { sha, lua }: { sha: string; lua: string }): void {
    this.#names.set([sha, lua], name);
  }

  override sendCommand(
    ...[command, stream]: Parameters<Redis['sendCommand']>
  ): ReturnType<Redis['sendCommand']> {
    const isScript = command.name === 'evalsha' || command.name === 'eval';
    if (!isScript || this.#own.has(command)) return super.sendCommand(command, stream);
    return this.#told(command);
  }

  async #told({ name: verb, args }: Command) {
    const [script = '', count, ...rest] = args.map(String);
    const keys = rest.slice(0, Number(count)).map((key) => `%RW~${key}`);
    await this.#admin.call('ACL', 'SETUSER', USER, 'resetkeys', ...keys);
    const own = new Command(verb, args, { replyEncoding: 'utf8' });
    this.#own.add(own);
    const reply = (await super.sendCommand(own)) as unknown[];
    const expiring = await expiringWork(this.#admin);
    if (expiring.length > 0) throw new Error(`keys of unfinished work expire: ${expiring.join()}`);
    for (const [texts, name] of this.#names) {
      if (texts.includes(script)) {
        const words = this.replies.get(name) ?? new Set();
        const answers = parseHeader(name, readSource(name)).each ? reply : [reply];
        for (const [word] of answers as [string][]) words.add(word);
        this.replies.set(name, words);
      }
    }
    return reply;
  }
}

let server: TestServer;
let admin: Redis;
let client: Restricted;
let connection: Connection;

beforeAll(async () => {
  server = await startOwnRedis();
  admin = new Redis(server.url);
  await admin.call('ACL', 'SETUSER', USER, 'on', `>${USER}`, '+@all', '&done:*');
  client = new Restricted(server.url, admin);
  connection = Connection.open(client);
});

afterAll(async () => {
  client?.disconnect();
  admin?.disconnect();
  await server?.close();
});

const queue = () => new QueueCommands(connection, 'story');
const request = (id: string) => new RequestCommands(connection, id);
const control = (id: string) => new ControlCommands(connection, id);
const hold = (id: string, generation: number) =>
  new ControlCommands(connection, id).hold(generation, 1_000);

const follow = (id: string, generation: number) =>
  new ReaderCommands(connection, id).follow(generation);

const create = (
  id: string,
  generation: number,
  owner = 'me',
  options = {},
  payloads: readonly string[] = [],
) =>
  request(id).create({
    ...{ generation, owner, leaseMs: 60_000, items: payloads },
    options: optionsOf(options, 'story'),
  });

const settle = (id: string, generation: number, op: number, keep: number, outcomes: Outcomes) =>
  request(id).settle(
    generation,
    'w',
    { op, leaseMs: LEASE_MS, keep, running: keep, read: 0 },
    outcomes,
  );
type Outcomes = Parameters<RequestCommands['settle']>[3];

/** Reads as a worker does, which no script does for it. */
async function read(id: string, count: number, worker = 'w') {
  await admin.call('ACL', 'SETUSER', USER, 'allkeys');
  const entries = await request(id).read(worker, count);
  if (entries === 'gone') throw new Error('gone');
  return entries;
}

async function tickAll() {
  const { claims } = await queue().tick('w', '{"tasks":"*"}');
  for (const claim of claims) {
    const tended = await request(claim.id).tend(claim.generation, claim.passed);
    if (tended.verdict === 'ok') await queue().writeBack(claim, tended);
    else await queue().finish(claim.id, claim.generation, 'gone');
  }
  return claims;
}

/** Requests that are submitted in one call, into a queue of their own. */
async function whole() {
  const apart = new QueueCommands(connection, 'whole');
  const ways = [{}, { delayMs: 60_000, deadlineMs: 90_000 }, { expedite: true }];
  for (const [i, options] of ways.entries())
    await apart.submit(headOf(options, 'whole'), [
      bodyOf({ id: `a${i}` }),
      bodyOf({ id: `b${i}` }),
    ]);
}

/** Compact requests from beginning to end, of which one is read and one is looked at. */
async function compact() {
  const id = 'compact';
  const apart = new QueueCommands(connection, 'whole');
  const [generation = 0] = await apart.submit(headOf({}, 'whole'), [bodyOf({ id })]);
  const of = { generation, worker: 'w', leaseMs: LEASE_MS, op: 1, want: 3, most: 3 };
  await request(id).enter({ ...of, tasks: '*', epochs: ['1'] });
  await request(id).fields('status', 'total');
  await request(id).inspect();
  await request(id).pending('w', 9);
  await settleAll({ request: request(id), generation }, { worker: 'w' });
  await request(id).pending('w', 9);
  await request(id).results('-', 9);
}

/** A request that succeeds, with all that can happen on its way. */
async function work() {
  const id = 'work';
  const generation = await queue().intent(id);
  await create(id, generation, 'me', { attempts: 2, limit: 3, window: 10, toleratedFailures: 9 });
  const first = await request(id).append(generation, 'me', 0, items(6));
  await queue().push({
    id,
    generation,
    ...(first as { mint: number; epoch: number }),
    priority: 50,
  });
  await request(id).append(generation, 'me', 9, items(1));
  await request(id).append(generation, 'me', 6, items(9));
  await request(id).renewProducer(generation);
  await request(id).seal(generation, 'me', 7);
  await request(id).seal(generation, 'me', 6);
  await request(id).append(generation, 'me', 6, items(1));
  await request(id).renewProducer(generation);
  await queue().shouldYield(id, 50);
  await queue().shouldYield('other', 50);
  await queue().shouldYield('other', 60);
  await request(id).enter({
    generation,
    worker: 'w',
    op: 1,
    want: 3,
    leaseMs: LEASE_MS,
    tasks: '*',
    epochs: ['1', '1', '1'],
  });
  const [a, b, c] = await read(id, 3);
  await request(id).renew(generation, 'w', LEASE_MS, [0, 50]);
  await settle(id, generation, 2, 3, [success(a!), failure(b!), back(c!)]);
  await request(id).take(generation, 'w', 3);
  await settle(id, generation, 3, 2, [failure(b!), failure(c!, 5_000)]);
  await request(id).inspect();
  const left = await settle(id, generation, 4, 0, []);
  const { epoch, priority } = left.settled as Settled;
  const swapped = await queue().exchange({ id, generation, mint: 1, epoch, priority }, 3);
  expect(swapped.length).toBeGreaterThan(0);
  await queue().exchange({ id: 'nobody', generation, mint: 1, epoch, priority }, 1);
  await queue().scheduleTend(id, generation, 0);
  moveClock(21_000);
  await tickAll();
  await tickAll();
  const frozen = { id, generation, passed: '', claim: 1 };
  const tended = { mint: 1, epoch: 9, priority: 50, before: '1', next: 0, parked: '' };
  expect(await queue().writeBack(frozen, tended)).toBe('moved');
  // A worker dies with what it read; somebody reclaims, somebody else ends it.
  await request(id).enter({
    generation,
    worker: 'dead',
    op: 1,
    want: 3,
    leaseMs: LEASE_MS,
    tasks: '*',
    epochs: ['1'],
  });
  await read(id, 1, 'dead');
  await queue().exchange({ id, generation, mint: 1, epoch, priority }, 100);
  await tickAll();
  moveClock(LEASE_MS + 10_000);
  await tickAll();
  await request(id).take(generation, 'dead', 1);
  await request(id).renew(generation, 'dead', LEASE_MS, []);
  await request(id).enter({
    generation,
    worker: 'w',
    op: 5,
    want: 3,
    leaseMs: LEASE_MS,
    tasks: '*',
    epochs: [],
  });
  for (let op = 6; op < 20; op += 1) {
    const taken = await request(id).take(generation, 'w', 3);
    const entries = [...(taken as { entries: Entry[] }).entries, ...(await read(id, 3))];
    const { settled } = await settle(
      id,
      generation,
      op,
      3,
      entries.map((one) => success(one)),
    );
    if (settled.verdict === 'complete') break;
  }
  expect((await request(id).state())?.outcome).toBe('succeeded');
  await settle(id, generation, 20, 0, []);
  await request(id).enter({
    generation,
    worker: 'w',
    op: 21,
    want: 1,
    leaseMs: LEASE_MS,
    tasks: '*',
    epochs: [],
  });
  await request(id).append(generation, 'me', 6, items(1));
  await request(id).renewProducer(generation);
  await request(id).seal(generation, 'me', 6);
  await request(id).cancel(generation);
  await hold(id, generation);
  await follow(id, generation);
  await request(id).tend(generation, '');
  await queue().finish(id, generation, 'succeeded');
  await queue().finish(id, generation, 'succeeded');
  await queue().push({ id, generation, mint: 1, epoch: 1, priority: 50 });
  await queue().writeBack(frozen, tended);
  await queue().scheduleTend(id, generation, 0);
  await queue().park(id, generation, '');
  // Its id again, while it is retained.
  const next = await queue().intent(id);
  await create(id, next);
  await queue().finish(id, next, 'gone');
  const whole = await queue().intent('at-once');
  await create('at-once', whole, 'me', {}, items(2));
}

/** A request whose only sub-request kills its workers. */
async function crashed() {
  const id = 'crashed';
  const generation = await queue().intent(id);
  await create(id, generation, 'me', { maxCrashes: 2 });
  await request(id).append(generation, 'me', 0, items(1));
  await request(id).seal(generation, 'me', 1);
  await request(id).enter({
    generation,
    worker: 'first',
    op: 1,
    want: 1,
    leaseMs: LEASE_MS,
    tasks: '*',
    epochs: ['1'],
  });
  await read(id, 1, 'first');
  moveClock(LEASE_MS + 1);
  await request(id).tend(generation, '');
  await request(id).enter({
    generation,
    worker: 'second',
    op: 1,
    want: 1,
    leaseMs: LEASE_MS,
    tasks: '*',
    epochs: [],
  });
  const second = await request(id).take(generation, 'second', 1);
  const [suspect] = (second as { entries: Entry[] }).entries;
  for (const worker of ['first', 'second'])
    await request(id).cause(generation, worker, { blockedMs: 30_000 }, false);
  await request(id).runAlone(generation, 'first', 1, [suspect!.entry]);
  await request(id).runAlone(generation, 'second', 1, [suspect!.entry]);
  moveClock(LEASE_MS + 1);
  await request(id).tend(generation, '');
  expect(await request(id).state()).toMatchObject({ outcome: 'failed', failed: 1 });
  await request(id).runAlone(generation, 'second', 1, [suspect!.entry]);
  await request(id).cause(generation, 'second', {}, true);
  await queue().finish(id, generation, 'failed');
}

/** The crashed one again, cut short. */
async function redriven() {
  const id = 'crashed';
  const again = new RedriveCommands(connection, id);
  const none = await queue().intent(id);
  await again.open(none, 'me', LEASE_MS, [99]);
  const generation = await queue().intent(id, none);
  // What thousands of workers left.
  const left = Array.from({ length: 2_500 }, (_, i) => [`op:w${i}`, '1']).flat();
  await admin.hset(requestKeys(id).request, ...left);
  await again.open(generation, 'me', LEASE_MS);
  await again.open(generation, 'other', LEASE_MS);
  await again.open(generation - 1, 'me', LEASE_MS);
  await again.runAgain(generation, 'other', [0]);
  await again.runAgain(generation, 'me', [0]);
  await request(id).enter({
    generation,
    worker: 'w',
    op: 1,
    want: 1,
    leaseMs: LEASE_MS,
    tasks: '*',
    epochs: ['1'],
  });
  const entries = await read(id, 1);
  await request(id).cancel(generation);
  await again.runAgain(generation, 'me', [0]);
  await settle(
    id,
    generation,
    2,
    0,
    entries.map((one) => success(one)),
  );
  await again.runAgain(generation, 'me', [0]);
  await again.runAgain(generation + 1, 'me', [0]);
  await new RedriveCommands(connection, 'nobody').open(generation, 'me', LEASE_MS);
  await queue().finish(id, generation, 'cancelled');
}

/** A request that is met by a worker that does not serve it, and cancelled. */
async function cancelled() {
  const id = 'cancelled';
  const generation = await queue().intent(id);
  await create(id, generation, 'me', { task: 'census', priority: 99 });
  await request(id).append(generation, 'me', 0, items(3));
  await request(id).enter({
    generation,
    worker: 'w',
    op: 1,
    want: 1,
    leaseMs: LEASE_MS,
    tasks: ' tax ',
    epochs: ['1'],
  });
  await queue().reopen(id, generation);
  await admin.hdel(queue().keys.open, id);
  await queue().reopen(id, generation);
  await queue().park(id, generation, 'census');
  await request(id).enter({
    generation,
    worker: 'w',
    op: 2,
    want: 1,
    leaseMs: LEASE_MS,
    tasks: ' census ',
    epochs: ['1'],
  });
  await read(id, 1);
  await hold(id, generation);
  await follow(id, generation);
  await request(id).cancel(generation);
  await request(id).append(generation, 'me', 3, items(1));
  await request(id).renewProducer(generation);
  await request(id).seal(generation, 'me', 3);
  await request(id).drop();
  await request(id).drop();
  await queue().finish(id, generation, 'dropped');
}

/** A request and its queue, paused, changed and resumed, at each stage of its life. */
async function controlled() {
  const id = 'controlled';
  const all = async (generation: number) => {
    await control(id).pause(generation);
    await control(id).resume(generation);
    await control(id).update(generation, { limit: 2, priority: 9, toleratedFailures: '5%' });
  };
  const generation = await queue().intent(id);
  await all(generation);
  await create(id, generation);
  await request(id).append(generation, 'me', 0, items(2));
  await all(generation);
  await request(id).enter({
    generation,
    worker: 'w',
    op: 1,
    want: 1,
    leaseMs: LEASE_MS,
    tasks: '*',
    epochs: [],
  });
  const entries = await read(id, 1);
  await request(id).cancel(generation);
  await all(generation);
  await request(id).renew(generation, 'w', LEASE_MS, []);
  await settle(
    id,
    generation,
    2,
    0,
    entries.map((one) => success(one)),
  );
  await all(generation);
  await queue().finish(id, generation, 'cancelled');
  const ofQueue = new QueueControlCommands(connection, 'story');
  await ofQueue.pause(1_000);
  await ofQueue.resume();
}

/** A request that never came into being: everything is answered 'gone'. */
async function gone() {
  const id = 'gone';
  const generation = await queue().intent(id);
  await request(id).inspect();
  moveClock(21_000);
  await tickAll();
  await create(id, generation);
  await request(id).append(generation, 'me', 0, items(1));
  await request(id).renewProducer(generation);
  await request(id).seal(generation, 'me', 0);
  await request(id).enter({
    generation,
    worker: 'w',
    op: 1,
    want: 1,
    leaseMs: LEASE_MS,
    tasks: '*',
    epochs: [],
  });
  await request(id).take(generation, 'w', 1);
  await settle(id, generation, 2, 0, []);
  await request(id).renew(generation, 'w', LEASE_MS, []);
  await request(id).cancel(generation);
  await hold(id, generation);
  await follow(id, generation);
  await request(id).drop();
  await queue().series(9);
  await queue().deregister('w');
}

/** One that keeps much. */
async function spent() {
  const id = 'spent';
  const generation = await queue().intent(id);
  await create(id, generation, 'me', { retentionMs: 600_000 });
  await request(id).append(generation, 'me', 0, items(1));
  await request(id).seal(generation, 'me', 1);
  await request(id).enter({
    generation,
    worker: 'w',
    op: 1,
    want: 1,
    leaseMs: LEASE_MS,
    tasks: '*',
    epochs: ['1'],
  });
  await request(id).results('-', 1);
  const [entry] = await read(id, 1);
  await settle(id, generation, 2, 0, [success(entry!, `"${'x'.repeat(17_000_000)}"`)]);
  await request(id).results('-', 1);
  await request(id).resultsPage(generation + 1, '-', 1, '+');
  await request(id).unlinkSpent(generation);
  moveClock(600_001);
  await request(id).unlinkSpent(generation);
  await request(id).unlinkSpent(generation);
}

/** A timed set: what is put, taken, settled and counted, and calls that come late. */
async function timed() {
  const condition = { lua: "error('no')", keys: ['open'] };
  client.learn('timed-take', takeWith(condition)());
  const set = new TimedCommands(connection, 'retry', 'story');
  const entry = { key: 'key', time: 1, token: '', payload: '1' };
  await set.put('p', 2, [entry]);
  await set.put('p', 1, [entry]);
  const held = new TimedCommands(connection, 'retry', 'story', { condition }).take(
    't',
    1,
    1,
    LEASE_MS,
  );
  await expect(held).rejects.toThrow('no');
  await set.take('t', 2, 1, LEASE_MS);
  await set.take('t', 1, 1, LEASE_MS);
  await set.counts();
  const outcome = { key: 'key', token: 't~2', verb: 'discard', value: 'no' } as const;
  await set.settle('p', 2, 3, [outcome]);
  await set.settle('p', 1, 3, [outcome]);
  await set.failures('', 1);
  await set.failures('', 1, 'newest');
}

/** A queue of ids: each answer there is, before, during and after its life. */
async function ids() {
  const queueOfIds = new IdQueueCommands(connection, 'story');
  const everything = async (life: string) => {
    await queueOfIds.add(life, { sender: 's', number: 1, keepMs: 60_000 }, ['a']);
    await queueOfIds.add(life, { sender: 's', number: 3, keepMs: 60_000, first: 1 }, ['a']);
    const pulled = await queueOfIds.pull(life);
    await queueOfIds.pull(life);
    moveClock(1_001);
    await queueOfIds.pull(life);
    const first = 'number' in pulled ? pulled : { number: 1, attempt: 1 };
    await queueOfIds.resume(life, first);
    await queueOfIds.resume(life, first);
    await queueOfIds.settle(life, first, 'too late');
    await queueOfIds.settle(life, first);
    await queueOfIds.pull(life);
    await queueOfIds.inspect(life);
  };
  await everything('none');
  await queueOfIds.join('life', { timeoutMs: 1_000, unique: true }, 1_000);
  await queueOfIds.join('other', { timeoutMs: 2_000 }, 1_000);
  await everything('life');
  await queueOfIds.drop('life');
  await queueOfIds.drop('life');
}

describe('every script', () => {
  it('touches the keys that it declares and no others, and gives each reply of its header', async () => {
    await whole();
    await compact();
    await work();
    await crashed();
    await redriven();
    await cancelled();
    await controlled();
    await gone();
    await spent();
    await timed();
    await ids();
    const given = Object.fromEntries(
      [...client.replies].map(([name, words]) => [name, [...words].sort()]),
    );
    const listed = Object.fromEntries(
      scriptNames.map((name) => [
        name,
        parseHeader(name, readSource(name))
          .replies.map(({ word }) => word)
          .sort(),
      ]),
    );
    expect(given).toEqual(listed);
  });

  it('would be caught if it touched another key', async () => {
    const generation = await queue().intent('caught');
    const { lua } = buildScript('schedule-tend', 'test');
    const [shebang, ...lines] = lua.split('\n');
    const changed = [shebang, "redis.call('GET', KEYS[1] .. '2')", ...lines].join('\n');
    const touching = { 'schedule-tend': { lua: changed, sha: shaOf(changed) } };
    await withScripts(touching, async () => {
      await expect(queue().scheduleTend('caught', generation, 0)).rejects.toMatchObject({
        code: 'NO_RIGHT',
      });
    });
  });
});
