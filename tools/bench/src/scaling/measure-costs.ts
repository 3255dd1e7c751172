import { startRedis } from '@piecework/embedded';
import { Redis } from 'ioredis';
import type { ServerCosts } from './costs.js';
import { Meter } from './meter.js';
import { queueCosts } from './queue-costs.js';
import { requestCosts } from './request-costs.js';

/** Measures every call of the hot path on a server of its own. */
export async function measureCosts(calls: number, lanes: number): Promise<ServerCosts> {
  await using server = await startRedis();
  const probe = new Redis(server.url);
  const meter = new Meter(server.url, probe, 'scaling', lanes);
  try {
    // The first round loads the scripts and grows the server's buffers.
    await requestCosts(meter, lanes);
    await queueCosts(meter, lanes);
    await probe.flushall();
    const request = await requestCosts(meter, calls);
    return { ...request, ...(await queueCosts(meter, calls)) };
  } finally {
    await meter.close();
    probe.disconnect();
  }
}
