import { describe, expect } from 'vitest';
import { type Flow, numbers, test } from '../support/flow.js';
import { startProgram } from '../support/processes.js';

const PROCESSES = 20;
const ITEMS = 1_200;

/** Twenty processes submit the same at the same moment; what each was told. */
async function twenty(flow: Flow, options: object, lose: boolean): Promise<unknown[]> {
  const { redis, queue } = flow;
  const argument = { redis, queue, options, items: ITEMS, lose };
  const programs = Array.from({ length: PROCESSES }, () =>
    startProgram(flow, 'submitter', argument),
  );
  await Promise.all(programs.map((program) => program.said({ timeoutMs: 45_000 })));
  for (const program of programs) program.kill('SIGUSR2');
  return Promise.all(programs.map((program) => program.said({ timeoutMs: 45_000 })));
}

async function expectOne(flow: Flow, told: readonly unknown[], id: string): Promise<void> {
  expect(told).toEqual(Array(PROCESSES).fill({ id, total: ITEMS }));
  const rows = await flow.connection.client.xrange(flow.request(id).keys.work, '-', '+');
  expect(rows.map(([, [, payload = '']]) => JSON.parse(payload))).toEqual(numbers(ITEMS));
  expect(await flow.request(id).state()).toMatchObject({ status: 'sealed', total: ITEMS });
  await flow.worker({ concurrency: 50, handler: (n: number) => n }).start();
  expect(await flow.complete(id)).toMatchObject({ succeeded: ITEMS, total: ITEMS });
}

describe('submitted by twenty processes at once', () => {
  for (const lose of [false, true]) {
    const how = lose ? ', though every first reply is lost' : '';
    test(`the same id is one request${how}`, async ({ flow }) => {
      const id = flow.id('same');
      await expectOne(flow, await twenty(flow, { id, limit: 50 }, lose), id);
    });

    test(`the same key of deduplication is one request${how}`, async ({ flow }) => {
      const dedupe = { key: `${flow.queue}.key`, periodMs: 60_000 };
      flow.after(() => flow.connection.client.unlink(flow.queueCommands.keys.dedupe(dedupe.key)));
      const told = await twenty(flow, { dedupe, limit: 50 }, lose);
      await expectOne(flow, told, (told[0] as { id: string }).id);
    });
  }
});
