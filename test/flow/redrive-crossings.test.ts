import type { OpenRequest } from '@piecework/producer';
import { DroppedError, NotFoundError, SealedError } from '@piecework/protocol';
import { Admin } from 'piecework';
import { describe, expect } from 'vitest';
import { type Flow, numbers, test } from '../support/flow.js';
import { type Sending, TappedRedis } from '../support/tap.js';
import { until } from '../support/until.js';

/* Between two calls of a redrive others may come. */

describe('a redrive of a request that is dropped meanwhile', { tags: ['one-server'] }, () => {
  test('does not disturb a submission of the same id under its intent', async ({ flow }) => {
    if (typeof flow.redis !== 'string') throw new Error('needs one server');
    let good = false;
    const handler = (n: number) => {
      if (!good) throw new Error('bad');
      return n;
    };
    await flow.worker({ handler }).start();
    const id = flow.id('again');
    const producer = flow.producer();
    await producer.submit(numbers(2), { id });
    const { generation } = await flow.complete(id);
    good = true;

    let opened: Promise<OpenRequest> | undefined;
    const open = () => {
      opened ??= producer.open({ id });
      return opened;
    };
    const redis = new TappedRedis(flow.redis, async ({ what }) => {
      // Its intent is out, and the life that it wants to follow goes.
      if (what === 'redrive') await flow.request(id).drop(generation);
      // Whatever it clears away then, the next life may have begun.
      if (what === 'finish') await open();
    });
    flow.after(() => redis.disconnect());
    await redis.connect();
    const admin = new Admin({ redis, queue: flow.queue });
    await expect(admin.redrive(id)).rejects.toThrow(NotFoundError);
    const request = await open();
    await request.append(...numbers(2));
    await request.seal();
    expect(await flow.complete(id)).toMatchObject({ total: 2, succeeded: 2 });
  });
});

/** A request of two whose sub-requests all failed. They fail as long as `task.bad`. */
async function failed(flow: Flow) {
  const task = { bad: true };
  const handler = (n: number) => {
    if (task.bad) throw new Error('bad');
    return n;
  };
  await flow.worker({ handler }).start();
  const id = flow.id('failed');
  await flow.producer().submit(numbers(2), { id });
  const { generation } = await flow.complete(id);
  const other = new Admin({ redis: flow.redis, queue: flow.queue });
  flow.after(() => other.close());
  return { id, generation, task, other };
}

describe('a redrive of what another one redrives meanwhile', () => {
  test('opens no generation, and the request does not complete once more', async ({ flow }) => {
    const { id, task, other } = await failed(flow);
    task.bad = false;
    const admin = new Admin({ redis: flow.redis, queue: flow.queue });
    flow.after(() => admin.close());
    let first: { generation: number; redriven: number } | undefined;
    const where = async () => {
      first ??= await other.redrive(id);
      await flow.complete(id);
      return true;
    };
    const second = await admin.redrive(id, { where });
    expect(first?.redriven).toBe(2);
    expect(second).toEqual({ generation: first?.generation, redriven: 0 });
    const { generation } = await flow.complete(id);
    expect(generation).toBe(first?.generation);
    expect((await admin.counts()).ended).toMatchObject({ succeeded: 1, failed: 1 });
  });
});

describe('a redrive whose reply is lost', { tags: ['one-server'] }, () => {
  /** Redrives over a connection that does `work` before the first call of the script `what`. */
  async function redriveAround(
    flow: Flow,
    id: string,
    what: string,
    work: (args: Sending['args']) => Promise<unknown>,
  ) {
    if (typeof flow.redis !== 'string') throw new Error('needs one server');
    let done: Promise<unknown> | undefined;
    const redis = new TappedRedis(flow.redis, async (sending) => {
      if (sending.what !== what) return;
      done ??= work(sending.args);
      await done;
    });
    flow.after(() => redis.disconnect());
    await redis.connect();
    return new Admin({ redis, queue: flow.queue }).redrive(id);
  }

  test('knows that it was carried out, when another redrive followed it', async ({ flow }) => {
    const { id, generation, task, other } = await failed(flow);
    let later = 0;
    // Its seal is carried out, and the reply is lost; when it is sent again, what it redrove has failed anew.
    const redriven = await redriveAround(flow, id, 'seal', async ([now, producer, sent]) => {
      const request = flow.request(id);
      await request.seal(Number(now), producer ?? '', Number(sent));
      await until(async () => (await request.state())?.status === 'complete');
      task.bad = false;
      const next = await other.redrive(id);
      expect(next.redriven).toBe(2);
      later = next.generation;
    });
    expect(redriven.redriven).toBe(2);
    expect(redriven.generation).toBeGreaterThan(generation);
    expect(redriven.generation).toBeLessThan(later);
    expect(await flow.complete(id)).toMatchObject({ generation: later, succeeded: 2 });
  });

  test('is not called dropped, when its generation was cancelled and another followed', async ({
    flow,
  }) => {
    const { id, task, other } = await failed(flow);
    task.bad = false;
    const redrive = redriveAround(flow, id, 'run-again', async ([now]) => {
      await flow.request(id).cancel(Number(now));
      expect((await other.redrive(id)).redriven).toBe(2);
    });
    await expect(redrive).rejects.toThrow(SealedError);
    expect(await flow.complete(id)).toMatchObject({ succeeded: 2 });
  });

  test('is dropped, when the request was dropped and redriven after it was submitted again', async ({
    flow,
  }) => {
    const { id, task, other } = await failed(flow);
    const redrive = redriveAround(flow, id, 'seal', async () => {
      await other.drop(id);
      await flow.producer().submit(numbers(2), { id });
      await flow.complete(id);
      task.bad = false;
      expect((await other.redrive(id)).redriven).toBe(2);
    });
    await expect(redrive).rejects.toThrow(DroppedError);
    expect(await flow.complete(id)).toMatchObject({ succeeded: 2 });
  });
});
