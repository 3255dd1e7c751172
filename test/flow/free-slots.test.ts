import { type Command, Redis } from 'ioredis';
import { expect } from 'vitest';
import { test } from '../support/flow.js';
import { scriptOf } from '../support/script-names.js';

/** A client that notes for how many slots each request is entered. */
class Watched extends Redis {
  readonly wanted: number[] = [];

  override sendCommand(command: Command, stream?: never): unknown {
    const { args } = command;
    // Digest, number of keys, three keys, then the arguments, of which the fourth says how many permits are wanted.
    if (scriptOf(command.name, args) === 'enter') this.wanted.push(Number(args[8]));
    return super.sendCommand(command, stream);
  }
}

/*
 * If requests of one sub-request were entered for all slots that became free while their tokens were popped, these slots
 * would be taken until the server has answered, and nothing could be popped for them.
 */
test('slots that become free during a pop are left to the next one, if more is there', {
  tags: ['one-server'],
}, async ({ flow }) => {
  const producer = flow.producer();
  const count = 400;
  const submit = (_: unknown, i: number) => producer.submit([i], { id: flow.id(`r${i}`) });
  const requests = await Promise.all(Array.from({ length: count }, submit));
  const client = new Watched(flow.redis as string, { lazyConnect: true, protocol: 2 });
  flow.after(() => client.disconnect());
  const worker = flow.worker({ redis: client, concurrency: 8, handler: (n: number) => n });
  flow.after(() => worker.close());
  await worker.start();
  await Promise.all(requests.map(({ id }) => flow.complete(id)));
  // By the hundredth the worker knows that they use one slot each; the last pop brings fewer than it asks for.
  const usual = client.wanted.slice(100, count - 20);
  expect(usual).toEqual(usual.map(() => 1));
});
