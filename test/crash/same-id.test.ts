import type { Submitted } from '@piecework/producer';
import { Agenda } from '@piecework/protocol';
import { describe, expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { type Flow, numbers, test } from '../support/flow.js';
import { payloadsIn } from '../support/payloads.js';
import { startProgram } from '../support/processes.js';
import { until } from '../support/until.js';

useTestClock();

const PROCESSES = 20;
/**
 * Under an id, and then under a key: one that is created, filled and sealed in one round trip, and one
 * that goes in chunk by chunk; each in a priority list of its own.
 */
const SIZES = [3, 1_200, 4, 1_100];

interface Told {
  readonly said: readonly Submitted[];
  /** How many replies got lost. */
  readonly lost: number;
}

/** Twenty processes submit the same requests at the same moment; what each was told. */
async function twenty(flow: Flow, submissions: object[], lose: boolean): Promise<Told[]> {
  const { redis, queue } = flow;
  const argument = { redis, queue, submissions, lose };
  const programs = Array.from({ length: PROCESSES }, () =>
    startProgram(flow, 'submitter', argument),
  );
  await Promise.all(programs.map((program) => program.said({ timeoutMs: 110_000 })));
  for (const program of programs) program.kill('SIGUSR2');
  return Promise.all(programs.map((program) => program.said<Told>({ timeoutMs: 110_000 })));
}

/** It has each item once, in order. */
async function expectOne(flow: Flow, id: string, total: number): Promise<void> {
  expect(await payloadsIn(flow.connection.client, flow.request(id).keys)).toEqual(numbers(total));
  expect(await flow.request(id).state()).toMatchObject({ status: 'sealed', total });
}

/** Nobody pushed the tokens that were minted in a call whose reply got lost: a tend finds that. */
async function lookUntilHinted(flow: Flow, ids: readonly string[]): Promise<void> {
  const agenda = new Agenda(flow.connection, flow.queueCommands);
  const { list } = flow.queueCommands.keys;
  const tended = async () => {
    const tokens = await Promise.all(ids.map((_, i) => flow.connection.client.llen(list(i))));
    if (tokens.every((count) => count > 0)) return true;
    moveClock(3_000);
    await agenda.tick();
    return false;
  };
  await until(tended, { what: 'there is a token of each' });
}

/** Works off what is there; how often each number was run, for each request. */
async function workedOff(flow: Flow, ids: readonly string[]): Promise<Map<string, number[]>> {
  const runs = new Map<string, number[]>(ids.map((id) => [id, []]));
  await flow
    .worker({
      concurrency: 50,
      handler: (n: number, { requestId }) => {
        const counts = runs.get(requestId) ?? [];
        counts[n] = (counts[n] ?? 0) + 1;
        runs.set(requestId, counts);
        return n;
      },
    })
    .start();
  await Promise.all(ids.map((id) => flow.complete(id)));
  return runs;
}

/** Each submission became one request, whoever was told of it. */
async function expectOneOfEach(flow: Flow, told: readonly Told[]): Promise<void> {
  const [first] = told;
  expect(first?.said).toMatchObject(SIZES.map((total) => ({ total })));
  const where = ({ said }: Told) => said.map(({ created: _, ...request }) => request);
  expect(told.map(where)).toEqual(told.map(() => where(first!)));
  // Exactly one of them made it.
  const makers = SIZES.map((_, i) => told.filter(({ said }) => said[i]?.created).length);
  expect(makers).toEqual(SIZES.map(() => 1));
  const ids = first!.said.map(({ id }) => id);
  for (const [i, id] of ids.entries()) await expectOne(flow, id, SIZES[i]!);
  await lookUntilHinted(flow, ids);
  const runs = await workedOff(flow, ids);
  expect([...runs.keys()]).toEqual(ids);
  expect([...runs.values()]).toEqual(SIZES.map((total) => Array(total).fill(1)));
  for (const [i, id] of ids.entries()) {
    const total = SIZES[i]!;
    expect(await flow.request(id).state()).toMatchObject({ succeeded: total, total });
  }
}

const expectLost = (told: readonly Told[], lose: boolean) => {
  for (const { lost } of told) {
    if (lose) expect(lost).toBeGreaterThan(SIZES.length);
    else expect(lost).toBe(0);
  }
};

describe('submitted by twenty processes at once', () => {
  for (const lose of [false, true]) {
    const how = lose ? ', though every first reply is lost' : '';
    // What gets lost is a reply to the client of the one server.
    const tags = lose ? ['one-server'] : [];
    test(`the same id, or the same key of deduplication, is one request${how}`, {
      tags,
      timeout: 240_000,
    }, async ({ flow }) => {
      const dedupe = SIZES.slice(2).map((items) => `${flow.queue}.${items}`);
      const ids = SIZES.slice(0, 2).map((items) => flow.id(`same-${items}`));
      const { client } = flow.connection;
      const keys = dedupe.map((key) => flow.queueCommands.keys.dedupe(key));
      flow.after(() => client.unlink(...keys));
      const named = [
        ...ids.map((id) => ({ id })),
        ...dedupe.map((key) => ({ dedupe: { key, periodMs: 3_600_000 } })),
      ];
      const submissions = SIZES.map((items, priority) => ({
        options: { ...named[priority], limit: 50, priority },
        items,
      }));
      const told = await twenty(flow, submissions, lose);
      expectLost(told, lose);
      const known = told[0]?.said.map(({ id }) => id);
      expect(known).toEqual([...ids, ...(await client.mget(...keys))]);
      await expectOneOfEach(flow, told);
    });
  }
});
