import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { requestKeys } from '@piecework/protocol';
import { type Command, Redis } from 'ioredis';
import { expect } from 'vitest';
import { numbers, test } from '../support/flow.js';
import { scriptOf } from '../support/script-names.js';

/** Exits as soon as the key exists; with an error when it does not within ten seconds. */
const AWAIT_KEY = `
  import { Redis } from 'ioredis';
  const [, url, key] = process.argv;
  const client = new Redis(url);
  for (let i = 0; i < 1_000 && !(await client.exists(key)); i += 1)
    await new Promise((resolve) => setTimeout(resolve, 10));
  const found = await client.exists(key);
  client.disconnect();
  process.exitCode = found ? 0 : 1;
`;

test('what was called before a handler that blocks the event loop is sent before it starts', {
  tags: ['one-server'],
}, async ({ flow }) => {
  // One that ACL users may use.
  const key = requestKeys(flow.id('sent')).request;
  flow.after(() => flow.connection.client.del(key));
  const handler = (n: number) => {
    if (n === 0) void flow.connection.client.set(key, 'yes');
    // Started in the same turn; blocks until the server has what the other one wrote.
    else
      execFileSync(process.execPath, [
        '--input-type=module',
        '-e',
        AWAIT_KEY,
        String(flow.redis),
        key,
      ]);
  };
  const { id } = await flow.producer().submit([0, 1], { id: flow.id('a') });
  const worker = flow.worker({ concurrency: 2, handler });
  await worker.start();
  expect(await flow.complete(id)).toMatchObject({ succeeded: 2 });
});

/** A client that notes of each question who waits whether a settle was sent before it was answered. */
class Noting extends Redis {
  readonly beside: boolean[] = [];
  #settles = 0;

  override sendCommand(command: Command, stream?: never): unknown {
    // Not one that is sent again with its text, as the server did not know it.
    const script = command.name === 'evalsha' ? scriptOf('evalsha', command.args) : undefined;
    if (script === 'settle') this.#settles += 1;
    const reply = super.sendCommand(command, stream) as Promise<unknown>;
    if (script !== 'should-yield') return reply;
    const before = this.#settles;
    return reply.finally(() => this.beside.push(this.#settles > before));
  }
}

test('who asks whether others wait sends a settle with it', { tags: ['one-server'] }, async ({
  flow,
}) => {
  const client = new Noting(flow.redis as string, { lazyConnect: true, protocol: 2 });
  flow.after(() => client.disconnect());
  const handler = () => sleep(5);
  const worker = flow.worker({ redis: client, concurrency: 4, quantumMs: 10, handler });
  // Before its client is.
  flow.after(() => worker.close());
  await worker.start();
  const { id } = await flow.producer().submit(numbers(800), { id: flow.id('a') });
  expect(await flow.complete(id)).toMatchObject({ succeeded: 800 });
  // The first question may come when the turn is over: nothing is read before it is answered.
  const [, ...next] = client.beside;
  expect(next.length).toBeGreaterThan(0);
  expect(next).not.toContain(false);
});
