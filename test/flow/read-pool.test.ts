import { describe, expect, it } from 'vitest';
import { ReadPool } from '../../packages/notifier/dist/waiting/read-pool.js';
import { until } from '../support/until.js';

describe('a read of a state that fails', () => {
  it('is reported, but not once nobody waits for it', async () => {
    let fail: (error: Error) => void = () => {};
    const read = new Promise<void>((_, reject) => {
      fail = reject;
    });
    const errors: unknown[] = [];
    const pool = new ReadPool<object>(
      () => read,
      (error) => errors.push(error),
    );
    const [left, kept] = [{}, {}];
    pool.ask([left, kept]);
    pool.forget(left);
    fail(new Error('Connection is closed.'));
    await until(() => errors.length > 0);
    expect(errors).toHaveLength(1);
    pool.forget(kept);
  });
});
