import { describe, expect, it } from 'vitest';
import { useTestClock, withMutations } from '../support/clock.js';
import { append, given, Hand, success } from '../support/given.js';
import { peek } from '../support/peek.js';

/*
 * The usual settle goes a shorter way than the general one (lua/lib/usual.lua). Both must come to the same.
 */

useTestClock();

describe('the usual settle', () => {
  const generally = {
    script: 'settle',
    cure: 'what waits or was reported is not usual',
    change: 'never',
  } as const;

  /** Settles and reads in several ways, and shows everything that is left and was answered. */
  async function played(results: 'keep' | 'discard', sealed: boolean) {
    const options = { items: 200, limit: 40, results };
    const scene = sealed ? await given.sealed(options) : await given.filled(options);
    const hand = new Hand(scene);
    const other = new Hand(scene, 'another');
    await hand.enter(20);
    await other.enter(20);
    const waiting = [...(await hand.read(80))];
    const replies: unknown[] = [];
    for (const [count, read, ahead] of [
      [1, 0, 0],
      [0, 5, 5],
      [7, 9, 9],
      [64, 3, 3],
    ] as const) {
      hand.op += 1;
      const { op, grantNo, answered } = hand;
      const numbers = { op, grantNo, answered, leaseMs: 30_000, keep: 20, running: 20 };
      const { settled, entries } = await scene.request.settle(
        scene.generation,
        hand.name,
        { ...numbers, read, ahead },
        waiting.splice(0, count).map((entry) => success(entry, `"${entry.index}"`)),
      );
      hand.answered = op;
      replies.push(
        { ...settled, entries: [] },
        entries.map(({ index, payload }) => [index, payload]),
      );
    }
    if (!sealed) await append(scene, 1, 200);
    const { leases, now, fields, generation, ...picture } = await peek(scene);
    const { succeeded, kept, cost, [`op:${hand.name}`]: op } = fields;
    return {
      replies,
      picture,
      stored: { succeeded, kept, cost, op },
      leftMs: leases['worker']! - now,
    };
  }

  for (const results of ['keep', 'discard'] as const) {
    for (const sealed of [true, false]) {
      it(`writes and answers what the general one does: results '${results}', sealed: ${sealed}`, async () => {
        const { leftMs, ...usual } = await played(results, sealed);
        await withMutations([generally], async () => {
          const { leftMs: generalLeftMs, ...general } = await played(results, sealed);
          expect(usual).toEqual(general);
          for (const left of [leftMs, generalLeftMs]) expect(left).toBeGreaterThan(20_000);
        });
      });
    }
  }
});
