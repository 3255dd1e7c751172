import { type HandlerContext, SlotPool } from '@piecework/worker';
import { describe, expect } from 'vitest';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

/** A worker with 24 slots, eight of them for each token at first, whose handlers all wait at a gate. */
async function held(flow: Flow, requests: number, items: number, limit: number) {
  const door = gate();
  const running: string[] = [];
  const producer = flow.producer();
  const submitted = [];
  for (let i = 0; i < requests; i += 1) {
    submitted.push(await producer.submit(numbers(items), { limit }));
  }
  const handler = async (_: number, { requestId }: HandlerContext) => {
    running.push(requestId);
    await door.opened;
  };
  await flow.worker({ concurrency: 24, handler }).start();
  await until(() => running.length === 24, { what: 'every slot is taken' });
  const served = new Set(running).size;
  door.open();
  for (const { id } of submitted) {
    expect(await flow.complete(id)).toMatchObject({ outcome: 'succeeded', succeeded: items });
  }
  return served;
}

describe('a big worker shares its slots', () => {
  test('among fewer requests than it has, a few slots each, and none is left out', async ({
    flow,
  }) => {
    const served = await held(flow, 30, 4, 10);
    // Six of four each; what the last gets depends on how many slots the enters before it have given back.
    expect(served).toBeGreaterThanOrEqual(6);
    expect(served).toBeLessThanOrEqual(8);
  });

  test('among as many as it has where each can use one only', async ({ flow }) => {
    expect(await held(flow, 30, 4, 1)).toBe(24);
  });

  test('by what requests lately made use of', () => {
    const slots = new SlotPool(100).join({ sessions: () => [], running: () => 0 });
    const takes = (each: number, more: boolean, isShort = false) => {
      for (let i = 0; i < 100; i += 1) slots.entered(each, more, isShort);
      return slots.tokens;
    };
    expect(slots.tokens).toBe(13);
    expect(takes(1, false)).toBe(100);
    expect(takes(3, false)).toBe(33);
    // It was given one, and would have taken more.
    expect(takes(1, true)).toBe(13);
    expect(takes(50, false)).toBe(13);
    // Their handlers are short, and so are those of the next ones as far as is known.
    expect(takes(1, true, true)).toBe(4);
    expect(takes(5, false, true)).toBe(20);
    slots.entered(25, true, undefined);
    expect(slots.share(undefined)).toBe(25);
    expect(slots.share(false)).toBe(8);
    slots.take(100);
    expect(slots.tokens).toBe(0);
  });
});
