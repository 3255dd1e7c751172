import { setTimeout as sleep } from 'node:timers/promises';
import { makePayloads, type Payload } from './payloads.js';
import { connectedClients, usedMemory } from './redis-figures.js';
import type { MemoryReport } from './run-order.js';
import type { Stage } from './stage.js';

/**
 * Memory of waiting sub-requests: measured after their producer has disconnected, so without its buffers. Redis frees
 * the buffers of idle connections in between (up to 50 KB a connection), so the figure needs thousands of sub-requests.
 */
export async function measureMemory(stage: Stage): Promise<MemoryReport> {
  const { order, probe } = stage;
  const others = await connectedClients(probe);
  const submitAndLeave = async (payloads: Payload[]) => {
    const session = await stage.openSession();
    await session.submit(payloads);
    await session.close();
    while ((await connectedClients(probe)) > others) await sleep(5);
  };
  // Scripts are loaded at their first call.
  await submitAndLeave(makePayloads(1, order.payloadBytes));
  const before = await usedMemory(probe);
  await submitAndLeave(stage.payloads());
  return { kind: 'memory', waitingBytes: (await usedMemory(probe)) - before };
}
