import type { OpenRequest } from '@piecework/producer';
import { NotFoundError } from '@piecework/protocol';
import { Admin } from 'piecework';
import { describe, expect } from 'vitest';
import { numbers, test } from '../support/flow.js';
import { TappedRedis } from '../support/tap.js';

/* Between two calls of a redrive others may come. */

describe('a redrive of what is dropped meanwhile', { tags: ['one-server'] }, () => {
  test('leaves alone who submits the id again under its intent', async ({ flow }) => {
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
