/**
 * What the doctor says of times that lie ahead of the server's clock, as after that went back.
 */
import { Admin, type Finding } from 'piecework';
import { describe, expect, it } from 'vitest';
import { connected, given, Hand, LEASE_MS, tickOnce } from '../support/given.js';

const HOUR_MS = 3_600_000;

async function clocks(queue: string): Promise<string[]> {
  const admin = new Admin({ redis: await connected(), queue });
  const findings: readonly Finding[] = await admin.doctor();
  return findings
    .filter(({ check, level }) => check === 'clocks' && level !== 'ok')
    .map(({ level, what }) => `${level} ${what}`);
}

describe('times that lie ahead of the clock', () => {
  it('are found for a queue and for a request, until they have healed', async () => {
    const scene = await given.sealed({ items: 1, limit: 1 });
    const queue = scene.queue.keys.queue;
    await new Hand(scene, 'dead').hold(1);
    await tickOnce(scene);
    expect(await clocks(queue)).toEqual([]);

    const { client } = scene.connection;
    const { counters, workers } = scene.queue.keys;
    const later = Date.now() + HOUR_MS;
    await client.hset(counters, 'tickedAt', later, 'resumedAt', later);
    await client.zadd(workers, later, 'dead');
    await client.hset(scene.queue.keys.workerInfo, 'dead', '{"tasks":"*","startedAt":1}');
    await client.hset(scene.request.keys.request, 'lease:dead', later + LEASE_MS);
    const found = await clocks(queue);
    expect(found).toHaveLength(2);
    expect(found.join(' ')).toMatch(/warning the clock of the queue's server went back/);
    expect(found.join(' ')).toMatch(/signs of life of 1 worker lie ahead: dead/);
    expect(found.join(' ')).toContain(
      `${scene.id}: leases that end later than their duration allows: dead`,
    );

    await client.hset(scene.request.keys.request, 'lease:dead', Date.now());
    await client.hset(scene.request.keys.request, 'longestDelayMs', 1_000);
    await client.zadd(scene.request.keys.due, later, `${scene.generation}-0`);
    expect((await clocks(queue)).join(' ')).toMatch(
      /: a sub-request waits 3\d+\.\d s for its next attempt/,
    );
    await client.zrem(scene.request.keys.due, `${scene.generation}-0`);

    await scene.queue.scheduleTend(scene.id, scene.generation, 1);
    await tickOnce(scene);
    expect(await clocks(queue)).toEqual([]);
  });
});
