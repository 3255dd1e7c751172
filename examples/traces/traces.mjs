// Traces one request over three processes, a retry and a redrive, and prints its spans as a tree.
//
//   node examples/traces/traces.mjs
import { fork } from 'node:child_process';
import { on, once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { context, propagation } from '@opentelemetry/api';
import { resolveRedisUrl } from '@piecework/embedded';
import { Command } from 'commander';
import { nanoid } from 'nanoid';
import { Piecework } from 'piecework';
import { redis as redisUrl } from '../option-values.mjs';
import { telemetry } from './telemetry.mjs';
import { tree } from './tree.mjs';

const options = new Command('traces.mjs')
  .description('Prints the spans of a request as a tree.')
  .option('--redis <url>', 'default: REDIS_URL, or embedded', redisUrl)
  .allowExcessArguments(false)
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .parse()
  .opts();

if (options.redis) process.env.REDIS_URL = options.redis;
const server = await resolveRedisUrl();
const { url } = server;
const queue = `traces-${nanoid(6)}`;
const spans = [];
const processes = new Map([[process.pid, 'caller']]);

/** Starts a worker process, and takes its spans. */
async function startWorker(name) {
  // In the environment: others could read a password in a command line.
  const env = { ...process.env, REDIS_URL: url };
  const child = fork(fileURLToPath(new URL('worker.mjs', import.meta.url)), [queue], { env });
  processes.set(child.pid, name);
  child.on('message', (message) => typeof message === 'object' && spans.push(message));
  await said(child, 'ready');
  return child;
}

/** Resolves when a worker has said this; spans may come before. */
async function said(child, word) {
  for await (const [message] of on(child, 'message')) if (message === word) return;
}

const workers = await Promise.all([startWorker('worker 1'), startWorker('worker 2')]);
const pw = new Piecework({ redis: url, queue, telemetry: telemetry((span) => spans.push(span)) });

// The baggage goes with the request: its handlers return the tenant.
const baggage = propagation.createBaggage({ tenant: { value: 'acme' } });
const request = await context.with(propagation.setBaggage(context.active(), baggage), () =>
  pw.submit(['steady', 'unsteady', 'broken'], { attempts: 2 }),
);
await request.completion();
for (const worker of workers) {
  const mended = said(worker, 'mended');
  worker.send('mend');
  await mended;
}
await request.redrive();
await request.completion();
const values = [];
for await (const { value } of request.results()) values.push(value);
await request.drop();
await pw.close();
for (const worker of workers) {
  worker.disconnect();
  await once(worker, 'exit');
}
await server.close();
console.log(tree(spans, processes));
console.log(`baggage in the handlers: ${values.join(', ')}`);
