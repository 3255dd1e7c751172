// How many connections a notifier needs for many awaited requests on a cluster: before, while all are
// awaited, and when all have ended.
//
//   node test/scale/awaited.mjs [--requests 10000] [--json]
//
// Exit code 1 when the notifier has more of them than one for commands to each node and one for
// notices to each master, or when one is not told of its end.
import { parseArgs } from 'node:util';
import { startCluster } from '@piecework/embedded';
import { Notifier } from '@piecework/notifier';
import { Producer } from '@piecework/producer';
import { Worker } from '@piecework/worker';
import { Redis } from 'ioredis';
import pMap from 'p-map';

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '10000' },
    json: { type: 'boolean', default: false },
  },
});
const count = Number(values.requests);
const MASTERS = 3;
const NODES = 6;
const queue = 'awaited';
const cluster = await startCluster({ password: '', masters: MASTERS });
const redis = { nodes: cluster.nodes.map(({ host, port }) => ({ host, port })) };
const watch = cluster.nodes.map(({ host, port }) => new Redis({ host, port }));
// Its commands under a name, too; those that ask for the map of slots have a name of their own.
const named = { ...redis, options: { redisOptions: { connectionName: 'awaited-commands' } } };
const notifier = new Notifier({ redis: named, queue });
const producer = new Producer({ redis, queue });
const worker = new Worker({ redis, queue, concurrency: 50, handler: () => {} });

async function connections() {
  const lists = await Promise.all(watch.map((client) => client.client('LIST')));
  const names = lists.join('\n').matchAll(/ name=(\S+)/g);
  const seen = { commands: 0, notices: 0 };
  for (const [, name] of names) {
    if (name === 'awaited-commands') seen.commands += 1;
    if (name === 'piecework-notifier') seen.notices += 1;
  }
  return seen;
}

async function subscribed() {
  const counts = await Promise.all(watch.map((client) => client.call('PUBSUB', 'SHARDCHANNELS')));
  return counts.flat().filter((channel) => channel.startsWith('done:')).length;
}

try {
  const numbers = Array.from({ length: count }, (_, i) => i);
  const submitted = await pMap(numbers, () => producer.submit([1]), { concurrency: 100 });
  const before = await connections();
  const awaited = submitted.map(({ id }) => notifier.completion(id));
  while ((await subscribed()) < count);
  const during = await connections();
  await worker.start();
  const outcomes = await Promise.all(awaited);
  const after = await connections();
  const told = outcomes.filter(({ status }) => status === 'succeeded').length;
  const figures = { requests: count, told, before, during, after };
  if (values.json) console.log(JSON.stringify(figures));
  else {
    console.log(
      `${told} of ${count} requests were awaited to their end. Connections of the notifier:`,
    );
    for (const [when, { commands, notices }] of Object.entries({ before, during, after }))
      console.log(`  ${when}: ${commands} for commands, ${notices} for notices`);
  }
  const enough = [during, after].every((it) => it.commands <= NODES && it.notices <= MASTERS);
  process.exitCode = enough && told === count ? 0 : 1;
} finally {
  await Promise.all([worker.close(), producer.close(), notifier.close()]);
  for (const client of watch) client.disconnect();
  await cluster.close();
}
