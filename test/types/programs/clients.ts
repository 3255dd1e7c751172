import { Notifier } from '@piecework/notifier';
import { Producer } from '@piecework/producer';
import { IdQueue, RetryQueue } from '@piecework/queues';
import { Worker } from '@piecework/worker';
import * as ioredis from 'ioredis';
import * as ioredis5 from 'ioredis-5';
import { Admin, Piecework, type RedisInput } from 'piecework';

/* Clients of any copy of ioredis, and their options. */
const nodes = [{ host: 'a', port: 7000 }];
const single: ioredis.RedisOptions = { host: 'a', tls: {}, lazyConnect: true };
const single5: ioredis5.RedisOptions = { host: 'a', tls: {}, lazyConnect: true };
const many5: ioredis5.ClusterOptions = { redisOptions: single5 };
const inputs: RedisInput[] = [
  new ioredis.Redis(),
  new ioredis.Cluster(nodes),
  new ioredis5.Redis(),
  new ioredis5.Cluster(nodes),
  single,
  single5,
  { nodes, options: many5 },
];
for (const redis of [...inputs, new ioredis5.Redis(), new ioredis5.Cluster(nodes)]) {
  new Piecework({ redis });
  new Admin({ redis });
  new Producer({ redis });
  new Notifier({ redis });
  new Worker({ redis, handler: () => {} });
  new RetryQueue({ redis, name: 'a' });
  await IdQueue.join('a', { redis });
}

/* Clients of other libraries lack what they are recognised by. */
const other = { duplicate: () => {}, sendCommand: async () => {}, isOpen: true, options: {} };
// @ts-expect-error: no client of ioredis
new Piecework({ redis: other });
