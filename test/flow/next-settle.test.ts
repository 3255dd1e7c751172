import { Piecework } from 'piecework';
import { describe, expect } from 'vitest';
import { gate, numbers, test } from '../support/flow.js';
import { holdable } from '../support/held-settles.js';
import { until } from '../support/until.js';

/*
 * From a worker's next settle on, nothing starts above a lowered limit, nor of a paused request. What
 * that settle says is of the moment when it was carried out: a handler that ends while it is on its way
 * leaves a permit that is not to be used again.
 */

describe('what ends while a settle is on its way makes no room', { tags: ['one-server'] }, () => {
  const changes = {
    'of a paused request': (request: ReturnType<Piecework['request']>) => request.pause(),
    'under a lowered limit': (request: ReturnType<Piecework['request']>) =>
      request.update({ limit: 1 }),
  };
  for (const [what, change] of Object.entries(changes)) {
    test(what, async ({ flow }) => {
      const client = holdable(flow);
      const gates = numbers(4).map(() => gate());
      const started: number[] = [];
      const handler = async (n: number) => {
        started.push(n);
        await gates[n]?.opened;
        return n;
      };
      const worker = flow.worker({ redis: client, concurrency: 3, leaseMs: 600_000, handler });
      // Before its client is.
      flow.after(() => worker.close());
      await worker.start();
      const pw = new Piecework({ redis: flow.redis, queue: flow.queue });
      flow.after(() => pw.close());
      const request = await pw.submit(numbers(20), { id: flow.id('a'), limit: 3 });
      await until(() => started.length === 3);

      const held = gate();
      const { waiting } = client;
      client.held = held.opened;
      gates[0]!.open();
      await until(() => client.waiting > waiting);
      await change(request);
      gates[1]!.open();
      await until(() => worker.running === 1);
      client.held = undefined;
      held.open();
      // All is settled and handed back but what still runs.
      await until(async () => {
        const { succeeded, inFlight } = (await request.status()).counts;
        return succeeded === 2 && inFlight === 1;
      });
      expect(started).toEqual([0, 1, 2]);
      for (const one of gates) one.open();
      await request.resume();
      expect(await flow.complete(request.id)).toMatchObject({ succeeded: 20 });
    });
  }
});
