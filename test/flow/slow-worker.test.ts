import type { Worker, WorkerOptions } from '@piecework/worker';
import { describe, expect } from 'vitest';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { type OwnClock, ownClock } from '../support/own-clock.js';
import { until } from '../support/until.js';

/*
 * A worker whose handlers take ten times as long as those of another one, near the end of a request. The clock stands
 * still unless a test moves it, so handlers take exactly as long as a test says.
 */

const LONG_MS = 600_000;
const QUICK_MS = 10;
const SLOW_MS = 100;
/** Slots of the quick worker; the slow one has one. */
const SLOTS = 5;

/** A worker whose handlers end when the test lets them. */
class Hand {
  readonly worker: Worker;
  readonly started: number[] = [];
  readonly settled = new Set<number>();
  readonly running = new Map<number, () => void>();
  #open = false;

  constructor(flow: Flow, concurrency: number, options: Partial<WorkerOptions>) {
    this.worker = flow.worker({
      ...{ concurrency, leaseMs: LONG_MS, quantumMs: LONG_MS, settleDelayMs: 1, ...options },
      handler: async (n: number) => {
        this.started.push(n);
        if (this.#open) return n;
        const { opened, open } = gate();
        this.running.set(n, () => open());
        await opened;
        this.running.delete(n);
        return n;
      },
    });
    this.worker.on('settled', ({ index }) => this.settled.add(index));
    flow.after(() => this.letAll());
  }

  letThese(): void {
    for (const open of this.running.values()) open();
  }

  letAll(): void {
    this.#open = true;
    this.letThese();
  }
}

interface Scene {
  readonly id: string;
  readonly clock: OwnClock;
  readonly slow: Hand;
  readonly quick: Hand;
  /** The quick worker ends handlers for so long, and begins as many. */
  quickFor(ms: number): Promise<void>;
  /** The handler of the slow worker ends. Resolves with its index. */
  endSlow(): number;
}

/** The slow worker has ended two sub-requests meanwhile, and knows how fast both workers are together. */
async function twoWorkers(
  flow: Flow,
  total: number,
  options: Partial<WorkerOptions> = {},
): Promise<Scene> {
  const clock = ownClock(flow);
  clock.stop();
  const slow = new Hand(flow, 1, options);
  const quick = new Hand(flow, SLOTS, {});
  await slow.worker.start();
  await quick.worker.start();
  const { id } = await flow.producer().submit(numbers(total), { limit: SLOTS + 1 });
  const isFull = () => slow.running.size === 1 && quick.running.size === SLOTS;
  await until(isFull, { everyMs: 1, what: 'all slots are in use' });
  const quickFor = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += QUICK_MS) {
      clock.move(QUICK_MS);
      const these = [...quick.running.keys()];
      quick.letThese();
      const hasOthers = () =>
        quick.running.size === SLOTS && these.every((n) => quick.settled.has(n));
      await until(hasOthers, { everyMs: 1, what: 'the quick worker has begun others' });
    }
  };
  const endSlow = () => {
    const [n] = slow.running.keys();
    if (n === undefined) throw new Error('none runs');
    slow.letThese();
    return n;
  };
  for (let i = 0; i < 2; i += 1) {
    await quickFor(SLOW_MS);
    const n = endSlow();
    await until(() => slow.settled.has(n) && isFull(), { everyMs: 1, what: 'it is settled' });
  }
  return { id, clock, slow, quick, quickFor, endSlow };
}

/** How many sub-requests the server has given to this worker. */
async function owned(flow: Flow, id: string, { worker }: Hand): Promise<number> {
  return (await flow.request(id).pending(worker.id, 1_000)).length;
}

const readyOf = async (flow: Flow, id: string) => (await flow.request(id).inspect())?.ready ?? 0;

/** Lets all handlers end: each ran once. */
async function finish(flow: Flow, { id, slow, quick }: Scene, total: number): Promise<void> {
  slow.letAll();
  quick.letAll();
  expect(await flow.complete(id)).toMatchObject({ succeeded: total, failed: 0, total });
  const started = [...slow.started, ...quick.started];
  expect(started.toSorted((a, b) => a - b)).toEqual(numbers(total));
}

describe('a worker that is slower than the others', () => {
  /** Of these, 20 are left when the slow worker has ended three: the others need 40 ms for them. */
  const TOTAL = 173;

  async function standBack(flow: Flow): Promise<Scene> {
    const scene = await twoWorkers(flow, TOTAL);
    await scene.quickFor(SLOW_MS);
    const n = scene.endSlow();
    await until(() => scene.slow.settled.has(n), { everyMs: 1, what: 'its third is settled' });
    expect(await readyOf(flow, scene.id)).toBeGreaterThan(SLOTS);
    return scene;
  }

  test('leaves the last sub-requests to them', async ({ flow }) => {
    const scene = await standBack(flow);
    const { id, slow, quick } = scene;
    expect(await owned(flow, id, slow)).toBe(0);
    quick.letAll();
    await until(() => quick.settled.size === TOTAL - 3, { what: 'the quick worker ends the rest' });
    await finish(flow, scene, TOTAL);
    expect(slow.started).toHaveLength(3);
  });

  test('takes part again when they have not done the rest in time', async ({ flow }) => {
    const scene = await standBack(flow);
    const { clock, slow } = scene;
    expect(slow.running.size).toBe(0);
    clock.move(SLOW_MS);
    clock.go();
    await until(() => slow.running.size === 1, { what: 'the slow worker runs another one' });
    await finish(flow, scene, TOTAL);
  });

  test('stops reading ahead before that', async ({ flow }) => {
    const total = 250;
    const settleDelayMs = SLOW_MS;
    const scene = await twoWorkers(flow, total, { settleDelayMs });
    const { id, slow, quickFor } = scene;
    // It did not know yet how long the others need.
    expect(await owned(flow, id, slow)).toBe(1 + 3);
    await quickFor(SLOW_MS);
    const n = scene.endSlow();
    await until(() => slow.running.size === 1 && !slow.running.has(n), { everyMs: 1 });
    await quickFor(settleDelayMs);
    await until(() => slow.settled.has(n), { everyMs: 1, what: 'its third is settled' });
    // It has read no other in its place.
    expect(await owned(flow, id, slow)).toBe(1 + 2);
    expect(await readyOf(flow, id)).toBeGreaterThan(SLOTS);
    await finish(flow, scene, total);
  });
});
