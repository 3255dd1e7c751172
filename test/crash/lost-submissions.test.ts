/**
 * Submissions to a server that loses its last writes: whoever was told that all is in was told the truth.
 * @module-tag own-server
 * @module-tag processes
 */
import { Producer, type RequestOptions } from '@piecework/producer';
import { Connection, PieceworkError, QueueCommands } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import { Redis } from 'ioredis';
import { describe, expect } from 'vitest';
import { loseWrites } from '../scale/lost-submissions.mjs';
import { apart } from '../support/apart.js';
import { type Flow, numbers, test } from '../support/flow.js';
import { ended, forgetting } from '../support/forgetful-redis.js';
import { playsAll } from '../support/mode.js';
import { startOwnRedis } from '../support/redis.js';

const ITEMS = 7;
/** How many round trips are forgotten. */
const BACK = playsAll ? [1, 2, 3, 4, 6] : [1, 2, 4];

type Submit = (producer: Producer, id: string) => Promise<unknown>;
const submit =
  (options: RequestOptions): Submit =>
  (producer, id) =>
    producer.submit(numbers(ITEMS), { ...options, id });

async function* streamed() {
  yield* numbers(ITEMS);
}

const kinds: Record<string, Submit> = {
  'a small one': submit({}),
  'a small one whose sides are apart': submit({}),
  'a delayed one in one call': submit({ delayMs: 5_000 }),
  'one of several chunks': submit({ window: 8 }),
  'a delayed one': submit({ delayMs: 5_000, window: 8 }),
  'a stream': (producer, id) => producer.submit(streamed(), { id, window: 8 }),
  'one by a key': (producer, id) =>
    producer.submit(numbers(ITEMS), { dedupe: { key: id, periodMs: 60_000 } }),
  'one in pieces': async (producer, id) => {
    await using request = await producer.open({ id });
    await request.append(...numbers(3));
    await request.flush();
    await request.append(...numbers(ITEMS - 3));
    await request.seal();
    return request;
  },
};

const IN_ONE_CALL = ['a small one', 'a delayed one in one call', 'one by a key'];

/** As a caller does: asks again as long as it is told that this can help. */
async function told(submit: Submit, producer: Producer, id: string) {
  for (let i = 0; i < 5; i += 1) {
    try {
      return (await submit(producer, id)) as { id: string; generation: number };
    } catch (error) {
      if (!(error instanceof PieceworkError && error.retryable)) throw error;
    }
  }
  throw new Error('in vain');
}

/** What both sides hold of a request that was acknowledged. */
async function heldOf(flow: Flow, url: string, { id }: { id: string }) {
  const connection = Connection.open(url);
  flow.after(() => connection.close());
  const queue = new QueueCommands(connection, flow.queue);
  const state = await new RequestCommands(connection, id).state();
  const { open } = await queue.whereabouts(id);
  const next = await connection.client.zscore(queue.keys.agenda, id);
  await connection.close();
  return { ...state, isOpen: open === state?.generation, isOnAgenda: next !== null };
}

describe('after the server has forgotten its last writes', () => {
  for (const [kind, submit] of Object.entries(kinds)) {
    test(`whichever round trip comes then, what is acknowledged will run: ${kind}`, {
      timeout: 240_000,
    }, async ({ flow }) => {
      const server = await startOwnRedis();
      flow.after(() => server.close());
      const keeper = new Redis(server.url);
      flow.after(() => keeper.disconnect());
      let forgets = 0;
      for (let n = 1, more = true; more; n += 1) {
        for (const back of BACK) {
          const forgetful = await forgetting(server.url, keeper, n, back);
          const { client } = forgetful;
          const redis = kind.endsWith('apart') ? apart(client) : client;
          const producer = new Producer({ redis, queue: flow.queue });
          const id = `${flow.queue}.${n}-${back}`;
          // In pieces, what is lost of them is told; then the caller begins anew, under another id.
          const fresh: Submit = (it) =>
            submit(it, kind === 'one in pieces' ? `${id}.${forgets++}` : id);
          const acknowledged = await told(fresh, producer, id);
          more = forgetful.forgot;
          await producer.close();
          await ended(forgetful);
          // A tick may come after the submission was acknowledged, and forget that.
          if (forgetful.forgot !== more) continue;
          // Or just before that was seen here: whoever still waits for an answer asks again behind the loss.
          if (forgetful.trips.at(-1) === `${n} tick forgotten`) continue;
          const held = await heldOf(flow, server.url, acknowledged);
          expect(held, `round trip ${n}, ${back} before it forgotten`).toMatchObject({
            ...{ status: 'sealed', total: ITEMS, isOpen: true, isOnAgenda: true },
          });
          forgets += Number(more);
        }
      }
      // In one call there are fewer round trips behind which something may be lost.
      const least = IN_ONE_CALL.includes(kind) ? 1 : 2 * BACK.length;
      expect(forgets).toBeGreaterThanOrEqual(least);
    });
  }

  test('a replica takes over some ms behind: all that was acknowledged after it runs', {
    timeout: 240_000,
  }, async () => {
    const found = await loseWrites({ failovers: 3, submitters: 6, seed: 11 });
    expect(found.lost).toEqual([]);
    expect(found.acknowledged).toBeGreaterThan(6);
  });
});
