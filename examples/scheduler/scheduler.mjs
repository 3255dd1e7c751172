// Reminders that are due one after the other, shared by two takers. One of them dies with a reminder in its
// hands, which comes back to the other when its lock is over; another one is moved before it is due.
//
//   node examples/scheduler/scheduler.mjs [--redis redis://…]       (default: REDIS_URL, or embedded)
import { parseArgs } from 'node:util';
import { resolveRedisUrl } from '@piecework/embedded';
import { nanoid } from 'nanoid';
import { Scheduler } from 'piecework';

const { values } = parseArgs({ options: { redis: { type: 'string' } } });
const LOCK_MS = 1_000;
const server = values.redis ? { url: values.redis } : await resolveRedisUrl();
const name = `example-${nanoid(8)}`;
const open = () => new Scheduler({ redis: server.url, name });
const [planner, clumsy, steady] = [open(), open(), open()];

const start = Date.now();
const reminders = ['water the plants', 'call home', 'go for a walk', 'sleep'];
for (const [i, what] of reminders.entries())
  await planner.enqueue({ to: 'me', what }, start + 200 * (i + 1));

// The same content is the same object, whatever the order of its fields: this moves it.
await planner.enqueue({ what: 'sleep', to: 'me' }, start + 400);

const [lost] = await clumsy.takeDue({ lockMs: LOCK_MS, waitMs: 5_000 });
console.log(`taken and never removed: ${lost.object.what}`);
await clumsy.close();

let left = reminders.length;
for await (const { object, at } of steady.due({ lockMs: LOCK_MS })) {
  console.log(`${object.what}, due after ${at - start} ms`);
  await steady.remove(object);
  left -= 1;
  if (left === 0) break;
}
await Promise.all([planner, steady].map((one) => one.close()));
await server.close?.();
