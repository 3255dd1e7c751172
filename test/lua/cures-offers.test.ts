/**
 * Requests that are submitted in one call, which needs one server for all keys.
 * @module-tag one-server
 */
import {
  Connection,
  type Granted,
  offerChannel,
  parseGranted,
  QueueCommands,
  QueueControlCommands,
} from '@piecework/protocol';
import { Redis } from 'ioredis';
import { expect, onTestFinished } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { settleWhole } from '../support/compact.js';
import { given, LEASE_MS, type Options, popAll, type Scene } from '../support/given.js';
import { inspect } from '../support/peek.js';
import { startOwnRedis } from '../support/redis.js';
import { playTraces, type Trace } from '../support/trace.js';
import { until } from '../support/until.js';
import { bodyOf, headOf, isCompact, submitWhole } from '../support/whole.js';

/*
 * Histories of offers (lua/lib/offers.lua): an idle worker enters the next small request in advance.
 */

useTestClock();

const OP = 7;

/** The terms of an offer. */
const terms = ({ op = OP, leaseMs = LEASE_MS, want = 3, most = 16, tasks = '*' } = {}) =>
  `${op} ${leaseMs} ${want} ${most} 0 0 ${offerChannel('idle')} ${tasks}`;

interface Idle {
  readonly scene: Scene;
  readonly worker: string;
  /** What has come on its channel. */
  readonly messages: Granted[];
}

/** A worker that listens for what it is granted, and offers. */
async function idle(options: Parameters<typeof terms>[0] = {}, worker = 'idle'): Promise<Idle> {
  const scene = await given.nothing();
  const messages: Granted[] = [];
  const listener = (scene.connection.client as Redis).duplicate();
  onTestFinished(() => listener.disconnect());
  listener.on('smessage', (_: string, message: string) => {
    const granted = parseGranted(message);
    if (granted) messages.push(granted);
  });
  await listener.ssubscribe(offerChannel(worker));
  expect(await scene.queue.offer(worker, '', terms(options))).toMatchObject({ taken: '' });
  return { scene, worker, messages };
}

const submit = async ({ scene }: Pick<Idle, 'scene'>, options: Options = {}): Promise<Scene> => ({
  ...scene,
  generation: await submitWhole(scene, { items: 3, limit: 3, ...options }),
});

const offerOf = ({ scene: { connection, queue }, worker }: Idle) =>
  connection.client.hget(queue.keys.offers, worker);

/** How a worker names a request that was entered by its offer. */
const nameOf = ({ id, generation }: Pick<Scene, 'id' | 'generation'>, op = OP) =>
  `${op} ${id}~${generation}`;

/** Another request of the same queue. */
async function submitAnother({ scene: { queue } }: Pick<Idle, 'scene'>): Promise<Scene> {
  const other = await given.nothing({ queue: queue.keys.queue });
  return submit({ scene: { ...other, queue } });
}

/** A queue on a server of its own, called by a user who has all rights but this; `client` has all. */
async function asUserWith(restriction: string) {
  const { url, close } = await startOwnRedis();
  const client = new Redis(url);
  const rights = ['~*', '&*', '+@all', restriction];
  await client.call('ACL', 'SETUSER', 'limited', 'on', 'nopass', ...rights);
  const connection = Connection.open(url.replace('//', '//limited:any@'));
  onTestFinished(async () => {
    client.disconnect();
    await connection.close();
    await close();
  });
  return { queue: new QueueCommands(connection, 'q'), client };
}

/** The request has a token, and no worker. */
async function waits(scene: Scene): Promise<void> {
  expect(await inspect(scene)).toMatchObject({ granted: 0, out: 1, permits: {} });
  expect(await popAll(scene)).toHaveLength(1);
}

const traces: Record<string, Trace> = {
  'an idle worker gets the next small request, and no token is pushed': {
    async play() {
      const one = await idle();
      const scene = await submit(one);
      const { id, generation } = scene;
      await until(() => one.messages.length === 1);
      const [granted] = one.messages as [Granted];
      expect(granted).toMatchObject({ id, generation, op: OP });
      const { permits, entries, ends, grantNo, compact } = granted.entered;
      expect({ permits, grantNo, compact }).toEqual({
        permits: 3,
        grantNo: String(OP),
        compact: 1,
      });
      expect(entries.map(({ payload }) => payload)).toEqual(['item 0', 'item 1', 'item 2']);
      const { leases, ...state } = await inspect(scene);
      expect(state).toMatchObject({ permits: { idle: 3 }, granted: 3, out: 0, epoch: 1 });
      expect(leases).toEqual({ idle: ends });
      expect(await popAll(scene)).toEqual([]);
      expect(await settleWhole(scene, { worker: one.worker, grantNo: OP })).toMatchObject({
        complete: [1],
      });
    },
    without: [],
  },

  'an offer brings one request, the next one a token': {
    async play() {
      const one = await idle();
      await submit(one);
      await waits(await submitAnother(one));
      expect(one.messages).toHaveLength(1);
    },
    without: [],
  },

  'a settle makes the next offer': {
    async play() {
      const one = await idle();
      const scene = await submit(one);
      const offer = terms({ op: OP + 1 });
      const known = nameOf(scene);
      await settleWhole(scene, { worker: one.worker, grantNo: OP, finishes: 0, known, offer });
      expect(await offerOf(one)).toMatch(new RegExp(`^\\d+ ${OP + 1} `));
      expect(await one.scene.queue.offer(one.worker, '', terms({ op: OP + 2 }))).toMatchObject({
        taken: '',
      });
    },
    without: [],
  },

  'a settle that is sent twice hides nothing that was entered by its offer': {
    async play() {
      const one = await idle();
      const scene = await submit(one);
      const offer = terms({ op: OP + 1 });
      const known = nameOf(scene);
      const settle = () =>
        settleWhole(scene, { worker: one.worker, grantNo: OP, finishes: 0, known, offer });
      await settle();
      const other = await submitAnother(one);
      await settle();
      const next = await one.scene.queue.offer(one.worker, known, terms());
      expect(next).toMatchObject({ taken: nameOf(other, OP + 1) });
    },
    without: [
      {
        script: 'settle-compact',
        cure: 'an offer hides nothing of which its worker does not know',
        change: 'always',
      },
    ],
  },

  'a request that the worker does not serve, or could not read as a whole, gets a token': {
    async play() {
      for (const offer of [{ tasks: ' other ' }, { most: 2 }, { want: 2 }]) {
        const one = await idle(offer);
        await waits(await submit(one, { task: 'mine' }));
        expect(await offerOf(one)).toMatch(/^\d+ 7 /);
      }
    },
    without: [],
  },

  'a request that is not compact gets a token': {
    async play() {
      const one = await idle();
      await waits(await submit(one, { deadlineMs: 86_400_000 }));
    },
    without: [],
  },

  'nothing is left to a worker that is gone': {
    async play() {
      const scene = await given.nothing();
      await scene.queue.offer('gone', '', terms());
      const submitted = await submit({ scene });
      expect(await isCompact(submitted)).toBe(true);
      await waits(submitted);
      expect(await offerOf({ scene, worker: 'gone', messages: [] })).toBeNull();
    },
    without: [
      {
        script: 'submit',
        cure: 'a request is not left to a worker that is gone',
        change: { becomes: 'if true then return ends end', uses: ['ends'] },
      },
    ],
  },

  'a worker that listens to a replica is not told what counts as not received': {
    tags: ['own-server'],
    async play() {
      const [master, replica] = await Promise.all([startOwnRedis(), startOwnRedis()]);
      onTestFinished(() => Promise.all([master.close(), replica.close()]).then(() => {}));
      const client = new Redis(replica.url);
      const listener = new Redis(replica.url);
      const connection = Connection.open(master.url);
      onTestFinished(() => {
        client.disconnect();
        listener.disconnect();
        return connection.close();
      });
      const { hostname, port } = new URL(master.url);
      await client.replicaof(hostname, port);
      await until(async () => /master_link_status:up/.test(await client.info('replication')));
      let told = 0;
      listener.on('smessage', () => {
        told += 1;
      });
      await listener.ssubscribe(offerChannel('idle'));
      const queue = new QueueCommands(connection, 'q');
      await queue.offer('idle', '', terms());
      await queue.submit(headOf({}, 'q'), [bodyOf({ id: 'r' })]);
      const list = queue.keys.list(50);
      expect(await connection.client.llen(list)).toBe(1);
      // Behind the message, if there was any.
      await until(() => client.exists(list));
      await listener.ping();
      expect(told).toBe(0);
    },
    without: [
      {
        script: 'submit',
        cure: 'what is entered by an offer is told by this server only',
        change: 'skip',
      },
    ],
  },

  'a paused queue grants nothing to idle workers': {
    async play() {
      const one = await idle();
      const control = new QueueControlCommands(one.scene.connection, one.scene.queue.keys.queue);
      await control.pause(0);
      await waits(await submit(one));
    },
    without: [
      { script: 'submit', cure: 'nothing is entered in a queue that is paused', change: 'always' },
    ],
  },

  'an offer ends by itself': {
    async play() {
      const one = await idle();
      moveClock(6_000);
      await waits(await submit(one));
      expect(await offerOf(one)).toBeNull();
    },
    without: [],
  },

  'an offer does not stand for longer where the clock went back': {
    async play() {
      moveClock(60_000);
      const one = await idle();
      moveClock(-60_000);
      await waits(await submit(one));
    },
    without: [
      { script: 'submit', cure: 'an offer is not believed beyond its length', change: 'never' },
    ],
  },

  'a worker learns what was entered by its offer also where the clock has gone back since': {
    async play() {
      moveClock(60_000);
      const one = await idle();
      const scene = await submit(one);
      moveClock(-60_000);
      await submitAnother(one);
      const next = await one.scene.queue.offer(one.worker, '', terms({ op: OP + 1 }));
      expect(next).toMatchObject({ taken: nameOf(scene) });
    },
    without: [
      {
        script: 'submit',
        cure: 'a note does not end as an offer does',
        change: { becomes: 'OFFER_MS' },
      },
    ],
  },

  'a note from a clock that was far ahead is deleted': {
    async play() {
      moveClock(100_000_000);
      const one = await idle();
      await submit(one);
      moveClock(-100_000_000);
      await submitAnother(one);
      expect(await offerOf(one)).toBeNull();
    },
    without: [],
  },

  'what was entered by an offer is noted until its lease has ended, however long that is': {
    async play() {
      const one = await idle({ leaseMs: 600_000 });
      const { queue, connection } = await submit(one);
      expect(await connection.client.pttl(queue.keys.offers)).toBeGreaterThan(500_000);
      // Another offer makes that no shorter.
      await queue.offer('other', '', terms());
      expect(await connection.client.pttl(queue.keys.offers)).toBeGreaterThan(500_000);
    },
    without: [{ script: 'submit', cure: 'a note is kept until the lease ends', change: 'skip' }],
  },

  'what was entered by an offer is tended when its lease ends': {
    async play() {
      const one = await idle({ leaseMs: 5_000 });
      const { id, queue, connection } = await submit(one);
      await until(() => one.messages.length === 1);
      const due = await connection.client.zscore(queue.keys.agenda, id);
      expect(Number(due)).toBe(one.messages[0]?.entered.ends);
    },
    without: [
      {
        script: 'submit',
        cure: 'what was entered by an offer is tended when its lease ends',
        change: 'skip',
      },
    ],
  },

  'offers of workers that are gone are deleted, also if nothing is submitted': {
    async play() {
      const { queue, connection } = await given.nothing();
      for (const worker of ['a', 'b', 'c']) await queue.offer(worker, '', terms());
      moveClock(6_000);
      await queue.offer('idle', '', terms());
      expect(await connection.client.hkeys(queue.keys.offers)).toEqual(['idle']);
    },
    without: [
      { script: 'offer', cure: 'offers of workers that are gone are deleted', change: 'skip' },
    ],
  },

  'an offer that this version cannot read is not taken': {
    async play() {
      for (const [text, isLeft] of [
        [`${Date.now() + 3_000} a form of a later version`, 1],
        ['taken', 0],
        ['', 0],
      ] as const) {
        const scene = await given.nothing();
        const { client } = scene.connection;
        await client.hset(scene.queue.keys.offers, 'other', text);
        await waits(await submit({ scene }));
        expect(await client.hexists(scene.queue.keys.offers, 'other')).toBe(isLeft);
      }
    },
    without: [],
  },

  'a producer that may not send to workers pushes a token': {
    tags: ['own-server'],
    async play() {
      const { queue, client } = await asUserWith('resetchannels');
      for (const worker of ['a', 'b', 'c']) await queue.offer(worker, '', terms());
      await queue.submit(headOf({}, 'q'), [bodyOf({ id: 'r' })]);
      expect(await client.llen(queue.keys.list(50))).toBe(1);
      // It tries one of them.
      const log = (await client.call('ACL', 'LOG')) as unknown[][];
      expect(log.map((entry) => entry.slice(0, 2))).toEqual([['count', 1]]);
    },
    without: [],
  },

  'where nobody may draw offers, they stand in vain, and requests get tokens': {
    tags: ['own-server'],
    async play() {
      const { queue, client } = await asUserWith('-hrandfield');
      expect(await queue.offer('idle', '', terms())).toMatchObject({ taken: '' });
      expect(await client.hexists(queue.keys.offers, 'idle')).toBe(1);
      await queue.submit(headOf({}, 'q'), [bodyOf({ id: 'r' })]);
      expect(await client.llen(queue.keys.list(50))).toBe(1);
    },
    without: [],
  },

  'a worker learns which request it has though the message got lost': {
    async play() {
      const one = await idle();
      const scene = await submit(one);
      const { queue } = scene;
      const taken = nameOf(scene);
      const again = () => queue.offer(one.worker, '', terms({ op: OP + 1 }));
      expect(await again()).toMatchObject({ taken });
      // Also if that answer gets lost.
      expect(await again()).toMatchObject({ taken });
      expect(await queue.offer(one.worker, '', '')).toMatchObject({ taken });
      expect(await queue.offer(one.worker, taken, terms({ op: OP + 2 }))).toMatchObject({
        taken: '',
      });
      expect(await offerOf(one)).toMatch(new RegExp(`^\\d+ ${OP + 2} `));
    },
    without: [
      {
        script: 'offer',
        cure: 'a worker learns of a request whose message got lost',
        change: 'never',
      },
    ],
  },

  'an offer is taken back': {
    async play() {
      const one = await idle();
      await one.scene.queue.offer(one.worker, '', '');
      expect(await offerOf(one)).toBeNull();
      await waits(await submit(one));
    },
    without: [],
  },

  'a worker that leaves the queue leaves no offer': {
    async play() {
      const one = await idle();
      await one.scene.queue.deregister(one.worker);
      expect(await one.scene.connection.client.exists(one.scene.queue.keys.offers)).toBe(0);
    },
    without: [],
  },
};

playTraces('offers of idle workers', traces);
