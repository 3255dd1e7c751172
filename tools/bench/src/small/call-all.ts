import { makePayloads, type Payload } from '../payloads.js';
import { Tally } from '../tally.js';
import type { Caller } from './small-contender.js';
import type { SmallOrder } from './small-order.js';

/** Keeps `atOnce` requests under way until `count` were made; answers the latency of each. @throws Error if a result is missing or came twice */
export async function callAll(
  caller: Caller,
  order: Pick<SmallOrder, 'size' | 'atOnce' | 'payloadBytes'>,
  count: number,
): Promise<number[]> {
  const { size, atOnce, payloadBytes } = order;
  const payloads = makePayloads(count * size, payloadBytes);
  const tally = new Tally(count * size);
  const latenciesMs: number[] = [];
  let next = 0;
  const call = async () => {
    while (next < count) {
      const own: Payload[] = payloads.slice(next * size, (next + 1) * size);
      next += 1;
      const startMs = performance.now();
      const values = await caller.request(own);
      latenciesMs.push(performance.now() - startMs);
      for (const value of values) tally.add(value);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, call));
  tally.check();
  return latenciesMs;
}
