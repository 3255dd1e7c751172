import { PayloadError } from '@piecework/protocol';
import type { HandlerContext } from '@piecework/worker';
import { describe, expect } from 'vitest';
import { type Flow, gate, test } from '../support/flow.js';
import { until } from '../support/until.js';

/** Submits items whose sub-requests may be tried so often. */
async function submitted(flow: Flow, items: readonly unknown[], attempts = 1): Promise<string> {
  const open = await flow.producer().open();
  await flow.connection.client.hset(flow.request(open.id).keys.request, 'attempts', attempts);
  await open.append(...items);
  await open.seal();
  return open.id;
}

const kept = (flow: Flow, id: string) =>
  flow.connection.client.hget(flow.request(id).keys.tries, '0:checkpoint');

describe('a checkpoint', () => {
  test('is given to the next attempt, however soon the failure came', async ({ flow }) => {
    const seen: unknown[] = [];
    const handler = (_: unknown, { attempt, checkpoint, checkpointed }: HandlerContext) => {
      seen.push(checkpointed);
      checkpoint({ attempt: 0 });
      checkpoint({ attempt });
      if (attempt < 3) throw new Error('again');
      return attempt;
    };
    await flow.worker({ handler }).start();
    const id = await submitted(flow, ['a'], 3);
    expect(await flow.complete(id)).toMatchObject({ outcome: 'succeeded', succeeded: 1 });
    expect(seen).toEqual([undefined, { attempt: 1 }, { attempt: 2 }]);
  });

  test('of an attempt that was over its time is given to the next', async ({ flow }) => {
    const seen: unknown[] = [];
    const held = gate();
    const handler = async (_: unknown, { attempt, checkpoint, checkpointed }: HandlerContext) => {
      seen.push(checkpointed);
      checkpoint({ attempt });
      if (attempt === 1) await held.opened;
    };
    await flow.worker({ handler, concurrency: 2 }).start();
    const { id } = await flow.producer().submit(['a'], { attempts: 2, attemptTimeoutMs: 500 });
    expect(await flow.complete(id)).toMatchObject({ outcome: 'succeeded', succeeded: 1 });
    expect(seen).toEqual([undefined, { attempt: 1 }]);
    held.open();
  });

  test('is kept by the next attempt that says nothing', async ({ flow }) => {
    const seen: unknown[] = [];
    const handler = (_: unknown, { attempt, checkpoint, checkpointed }: HandlerContext) => {
      seen.push(checkpointed);
      if (attempt === 1) checkpoint([1]);
      if (attempt < 3) throw new Error('again');
    };
    await flow.worker({ handler }).start();
    await flow.complete(await submitted(flow, ['a'], 3));
    expect(seen).toEqual([undefined, [1], [1]]);
  });

  test('goes along with what a closing worker gives back', async ({ flow }) => {
    const at = gate();
    const leaving = flow.worker({
      handler: async (_: unknown, { checkpoint, signal }: HandlerContext) => {
        checkpoint('half');
        at.open();
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
    });
    await leaving.start();
    const id = await submitted(flow, ['a']);
    await at.opened;
    await leaving.close({ timeoutMs: 0 });
    const seen: unknown[] = [];
    const handler = (_: unknown, { checkpointed }: HandlerContext) => void seen.push(checkpointed);
    await flow.worker({ handler }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1 });
    expect(seen).toEqual(['half']);
  });

  test('is sent while the handler runs, and is gone when it succeeded', async ({ flow }) => {
    const hold = gate();
    const handler = async (n: number, { checkpoint }: HandlerContext) => {
      if (n === 1) return;
      checkpoint({ half: true });
      await hold.opened;
    };
    await flow.worker({ handler, leaseMs: 1_000 }).start();
    const open = await flow.producer().open();
    await open.append(0);
    await open.flush();
    await until(async () => (await kept(flow, open.id)) === '{"half":true}');
    hold.open();
    await until(async () => (await flow.request(open.id).state())?.succeeded === 1);
    expect(await kept(flow, open.id)).toBeNull();
    await open.seal();
    await flow.complete(open.id);
  });

  test('that is too large or no JSON is refused, and the one before stays', async ({ flow }) => {
    const refused: unknown[] = [];
    const seen: unknown[] = [];
    const handler = (_: unknown, { attempt, checkpoint, checkpointed }: HandlerContext) => {
      seen.push(checkpointed);
      if (attempt === 2) return;
      checkpoint('x'.repeat(8_190));
      for (const wrong of ['x'.repeat(8_191), 'ä'.repeat(4_096), undefined, 1n, () => 1]) {
        try {
          checkpoint(wrong);
        } catch (error) {
          refused.push(error);
        }
      }
      throw new Error('again');
    };
    await flow.worker({ handler }).start();
    await flow.complete(await submitted(flow, ['a'], 2));
    expect(seen).toEqual([undefined, 'x'.repeat(8_190)]);
    expect(refused).toHaveLength(5);
    for (const error of refused) expect(error).toBeInstanceOf(PayloadError);
    expect(refused[0]).toMatchObject({ message: expect.stringContaining('8192') });
  });
});
