/**
 * A cluster that names addresses nobody can reach, asks for a password, or speaks TLS: all connections
 * have to get there, also those beside the cluster client.
 * @module-tag processes
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EmbeddedCluster, startCluster } from '@piecework/embedded';
import { Notifier } from '@piecework/notifier';
import { Producer } from '@piecework/producer';
import { Connection, type RedisInput } from '@piecework/protocol';
import { Worker } from '@piecework/worker';
import { type NatMap, Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../packages/embedded/src/free-port.js';
import { makeCertificate } from '../support/certificate.js';
import { gate, Log, numbers } from '../support/flow.js';
import { freshName } from '../support/given.js';
import { moving, nameThere } from '../support/moving.js';
import { until } from '../support/until.js';

let cluster: EmbeddedCluster;
const clients: Redis[] = [];

beforeAll(async () => {
  // Replicas would look for their masters at the addresses that nobody reaches.
  cluster = await startCluster({ password: '', masters: 3, replicasPerMaster: 0 });
  for (const { host, port } of cluster.nodes) clients.push(new Redis({ host, port }));
});

afterAll(async () => {
  for (const client of clients) client.disconnect();
  await cluster?.close();
});

/** Some requests through producer, worker and notifier. Answers what the worker logged. */
async function work(redis: RedisInput): Promise<Log['lines']> {
  const queue = freshName('reach');
  const log = new Log();
  const worker = new Worker({
    ...{ redis, queue, logger: log as never, concurrency: 5 },
    handler: (n: number) => n,
  });
  const producer = new Producer({ redis, queue });
  const notifier = new Notifier({ redis, queue });
  try {
    // On every master.
    const ids: string[] = [];
    for (let i = 0; i < 10; i += 1) ids.push((await producer.submit(numbers(5))).id);
    const completions = ids.map((id) => notifier.completion(id));
    await worker.start();
    for (const outcome of await Promise.all(completions))
      expect(outcome).toMatchObject({ status: 'succeeded', counts: { succeeded: 5 } });
    await until(() => worker.health().ready, { what: 'its blocking connection is up' });
    await until(async () => {
      const lists = await Promise.all(clients.map((client) => client.client('LIST')));
      const said = String(lists.join());
      return said.includes('piecework-control') && said.includes('piecework-notifier');
    });
    return log.lines;
  } finally {
    await Promise.all([worker.close(), producer.close(), notifier.close()]);
  }
}

const nodes = () => cluster.nodes.map(({ host, port }) => ({ host, port }));

describe('behind a network that translates addresses', () => {
  /** What the nodes call themselves; nothing listens there. */
  const announced = (port: number) => port - 19_000;

  beforeAll(async () => {
    for (const [i, { port }] of nodes().entries())
      await clients[i]?.config('SET', 'cluster-announce-port', announced(port));
    // Told to the others by and by.
    for (const client of clients) {
      await until(async () => {
        const slots = await client.cluster('SLOTS');
        return slots.every(([, , master]) => Number(master?.[1]) < 10_000);
      });
    }
  });

  afterAll(async () => {
    for (const client of clients) await client.config('SET', 'cluster-announce-port', 0);
    for (const client of clients) {
      await until(async () => {
        const slots = await client.cluster('SLOTS');
        return slots.every(([, , master]) => Number(master?.[1]) > 10_000);
      });
    }
  });

  const natMap = (): NatMap =>
    Object.fromEntries(
      nodes().map(({ host, port }) => [`${host}:${announced(port)}`, { host, port }]),
    );

  test('every connection goes where the map says', async () => {
    expect(await work({ nodes: nodes(), options: { natMap: natMap() } })).toEqual([]);
  });

  test('the map may be a function', async () => {
    const map = natMap() as Record<string, { host: string; port: number }>;
    const lines = await work({ nodes: nodes(), options: { natMap: (key) => map[key] ?? null } });
    // Code cannot be given to the renewal thread, which is said.
    expect(lines.map(({ what }) => what)).toEqual([expect.stringMatching(/^no renewal thread/)]);
  });

  const portOf = (port: number) => (port < 10_000 ? port + 19_000 : port);

  test('calls of a slot that has moved find its new master through the map at once', async () => {
    const scene = await moving({ cluster, options: { natMap: natMap() }, portOf });
    const request = scene.request(scene.queue);
    expect(await request.state()).toBeNull();
    await scene.operator.move(await scene.operator.slotOf(scene.queue));
    // All of them before the client has looked at the map anew, each sent again five times at most.
    const calls = Array.from({ length: 300 }, () => request.state());
    expect(new Set(await Promise.all(calls))).toEqual(new Set([null]));
  });

  test('hash slots that move are followed through the map', async () => {
    const scene = await moving({ cluster, options: { natMap: natMap() }, portOf });
    const { operator, queue } = scene;
    const slot = await operator.slotOf(queue);
    const first = gate();
    const begun: string[] = [];
    const handler = async (name: string) => {
      begun.push(name);
      if (name === 'first') await first.opened;
    };
    const worker = await scene.worker(handler, { concurrency: 1 });
    const back: string[] = [];
    worker.on('reconnected', ({ connection }) => void back.push(connection));
    const producer = scene.producer();
    const notifier = scene.notifier();
    const submit = async (name: string, priority: number) => {
      const id = await nameThere(operator, `${queue}.${name}`, (_, it) => it !== slot);
      return producer.submit([name], { id, priority });
    };
    const requests = [await submit('first', 50)];
    await until(() => begun.length === 1);
    requests.push(await submit('stays', 20), await submit('moves', 10));
    const completions = requests.map(({ id }) => notifier.completion(id));
    for (const one of completions) one.catch(() => {});
    const listens = async (id: string) => {
      const { port } = await operator.masterOf(await operator.slotOf(id));
      const channels = await operator.at({ port }).call('PUBSUB', 'SHARDCHANNELS');
      return (channels as string[]).some((channel) => channel.includes(`{${id}}`));
    };

    // The queue's, on its way: a token is found on either side, and then the new master is popped from.
    const move = await operator.beginMove(slot);
    const { host, port } = move.to;
    await operator.at(move.from).call('MIGRATE', host, port, `{${queue}}:10`, 0, 5_000);
    // That of one who is awaited, whole.
    const [{ id: awaited = '' } = {}] = requests;
    await until(() => listens(awaited));
    await operator.move(await operator.slotOf(awaited));
    await until(() => listens(awaited), { what: 'it is listened to at the new master' });
    first.open();
    await until(() => begun.length === 3, { what: 'all tokens were found' });
    expect(begun).toEqual(['first', 'moves', 'stays']);
    while ((await move.step(10)) > 0);
    await move.finish();
    await until(() => back.includes('intake') && worker.health().ready);
    const list = async () => String(await operator.at(move.to).client('LIST'));
    await until(async () => (await list()).includes('cmd=blmpop'), {
      what: 'the new master is popped from',
    });
    requests.push(await submit('afterwards', 50));
    for (const completion of completions)
      expect(await completion).toMatchObject({ counts: { succeeded: 1 } });
    await scene.allRight(requests);
    expect(scene.ranAgain()).toEqual([]);
  });
});

describe('over TLS', () => {
  const folder = mkdtempSync(join(tmpdir(), 'piecework-tls-'));
  const tlsPorts = new Map<number, number>();
  let cert: string;

  beforeAll(async () => {
    const made = await makeCertificate(folder);
    cert = made.cert;
    for (const [i, { port }] of nodes().entries()) {
      const tlsPort = await freePort();
      tlsPorts.set(port, tlsPort);
      await clients[i]?.call(
        ...['CONFIG', 'SET', 'tls-cert-file', made.certFile, 'tls-key-file', made.keyFile],
        ...['tls-ca-cert-file', made.certFile, 'tls-auth-clients', 'no', 'tls-port', tlsPort],
      );
    }
    // Redis 7.0 goes on naming the ports of the start, which the map turns into those of TLS. What is newer
    // names those itself, each node its own at once, those of others when it has heard of them.
    const secured = [...tlsPorts.values()];
    for (const port of secured) {
      const client = new Redis({ host: '127.0.0.1', port, tls: { ca: cert } });
      const named = async () =>
        (await client.cluster('SLOTS')).flatMap(([, , ...served]) => served.map(([, at]) => at));
      try {
        await until(
          async () => {
            const at = await named();
            return [[...tlsPorts.keys()], secured].some((all) =>
              at.every((one) => all.includes(one)),
            );
          },
          { what: 'it names ports of one kind' },
        );
      } finally {
        client.disconnect();
      }
    }
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('every connection is encrypted, and believes the given certificate only', async () => {
    const at = (port: number) => ({ host: '127.0.0.1', port: tlsPorts.get(port) ?? 0 });
    const natMap = Object.fromEntries(
      nodes().map(({ host, port }) => [`${host}:${port}`, at(port)]),
    );
    const secure = (tls: object) => ({
      nodes: nodes().map(({ port }) => at(port)),
      options: { natMap, redisOptions: { tls } },
    });
    const lines = await work(secure({ ca: cert }));
    expect(lines).toEqual([]);
    await expect(Connection.open(secure({})).check()).rejects.toMatchObject({ code: 'CONNECTION' });
  });
});

describe('with a user and a password', () => {
  const password = 'p@ss,word';

  beforeAll(async () => {
    for (const client of clients) {
      await client.call('ACL', 'SETUSER', 'app', 'on', `>${password}`, '~*', '&*', '+@all');
      await client.call('ACL', 'SETUSER', 'default', 'resetpass', '>other');
    }
  });

  test('every connection uses them, named as options or in the URLs', async () => {
    const options = { redisOptions: { username: 'app', password } };
    expect(await work({ nodes: nodes(), options })).toEqual([]);
    const user = `app:${encodeURIComponent(password)}`;
    const urls = nodes().map(({ host, port }) => `redis://${user}@${host}:${port}`);
    expect(await work(urls.join(','))).toEqual([]);
  });
});
