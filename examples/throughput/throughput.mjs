// Both programs on one Redis: REDIS_URL, or an embedded one that ends with this program.
//
//   node examples/throughput/throughput.mjs [producer's arguments] [-- consumer's arguments]
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { resolveRedisUrl } from '@piecework/embedded';
import { nanoid } from 'nanoid';

const given = process.argv.slice(2);
const dashes = given.includes('--') ? given.indexOf('--') : given.length;

const redis = await resolveRedisUrl({ onStatus: (text) => console.error(text) });
// A queue of its own, so that each of the two has no other partner.
const queue = ['--queue', `throughput-${nanoid(8)}`];

function start(program, args) {
  const file = fileURLToPath(new URL(program, import.meta.url));
  const child = spawn(process.execPath, [file, ...queue, ...args], {
    stdio: 'inherit',
    env: { ...process.env, REDIS_URL: redis.url },
  });
  return { child, ended: once(child, 'close').then(([code]) => code ?? 1) };
}

const consumer = start('./consumer.mjs', given.slice(dashes + 1));
const producer = start('./producer.mjs', ['--wait', ...given.slice(0, dashes)]);

let stopped = false;
function stop() {
  // Once: a second signal of a kind ends a program without good order.
  if (!stopped) for (const { child } of [consumer, producer]) child.kill('SIGTERM');
  stopped = true;
}
for (const name of ['SIGINT', 'SIGTERM']) process.on(name, stop);
// Whichever ends first, the other has nothing more to do.
await Promise.race([consumer.ended, producer.ended]);
stop();
const codes = await Promise.all([consumer.ended, producer.ended]);
await redis.close();
process.exitCode = Math.max(...codes);
