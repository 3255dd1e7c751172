import { type Entry, generationOf, type RequestCommands } from '@piecework/protocol';
import type { WorkerCore } from './worker-core.js';

/** As many permits as there may be: keeps all, whatever somebody else here holds by now. */
const ALL = 1_000_000_000;

/**
 * Gives back what was read behind a settle that found its life of the request over: it is of the next
 * life of that id, of which this worker may hold no permit. Otherwise it would stay here, and nobody
 * would look for it before the next audit.
 */
export function giveBackNextLife(
  core: WorkerCore,
  commands: RequestCommands,
  requestId: string,
  entries: readonly Entry[],
): void {
  const [first] = entries;
  if (!first) return;
  const generation = generationOf(first.entry);
  const { id, leaseMs, queue } = core;
  const numbers = { op: core.nextOp(), leaseMs, keep: ALL, running: ALL, read: 0 };
  const outcomes = entries.map(({ entry }) => ({ entry, kind: 'b' }) as const);
  core.later(requestId, async () => {
    const { settled } = await commands.settle(generation, id, numbers, outcomes);
    if (settled.verdict !== 'ok' || settled.mint === 0) return;
    const { mint, epoch, priority, due } = settled;
    const minted = { id: requestId, generation, mint, epoch, priority, due };
    core.later(requestId, () => queue.push(minted));
  });
}
