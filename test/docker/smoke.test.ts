/**
 * The way of a request through a Redis in a container, whatever the other tests use.
 * @module-tag own-server
 */
import { Piecework, Worker } from 'piecework';
import { expect, test } from 'vitest';
import { askDocker, needsDocker } from '../support/docker.js';
import { Log, numbers } from '../support/flow.js';
import { testImage } from '../support/mode.js';

needsDocker();

test('a request is worked off through a Redis in a container, which then is gone', async () => {
  const { docker } = await import('../support/providers/docker.js');
  const redis = await docker.start();
  const containers = () =>
    askDocker('ps', '--all', '--format', '{{.Image}} {{.Ports}}', '--filter', publishes(redis.url));
  try {
    expect(await containers()).toBe(`${testImage} 127.0.0.1:${new URL(redis.url).port}->6379/tcp`);
    const log = new Log();
    await using worker = new Worker({
      redis: redis.url,
      logger: log as never,
      handler: (n: number) => n * 2,
    });
    await worker.start();
    await using pw = new Piecework({ redis: redis.url });
    const request = await pw.submit(numbers(500), { limit: 5 });
    expect(await request.completion()).toMatchObject({
      status: 'succeeded',
      counts: { total: 500, succeeded: 500 },
    });
    const values: unknown[] = [];
    for await (const result of request.results({ order: 'index' })) {
      values.push(result.status === 'succeeded' && result.value);
    }
    expect(values).toEqual(numbers(500).map((n) => n * 2));
    expect(log.lines.filter(({ level }) => level === 'error')).toEqual([]);
  } finally {
    await redis.close();
  }
  expect(await containers()).toBe('');
  await redis.close();
});

const publishes = (url: string) => `publish=${new URL(url).port}`;
