import type { Client, QueueCommands } from '@piecework/protocol';
import type { Scene } from '../support/given.js';
import type { Picture } from '../support/peek.js';
import type { Runs } from './runs.js';

/*
 * What must be in the end, however the actors were driven and whatever went wrong: every sub-request is settled
 * once, each result is that of a handler that ran, a failure has used up its attempts or crashes of its own, and
 * nothing is left. The books (faultsOf in support/peek.ts) are checked besides: after every step, or in the end.
 */

/** Whether there is no request under an id, or no more. */
export const isAbsent = ({ status }: Picture): boolean =>
  status === 'none' || status === 'void' || status === 'dropped';

/** Says what is wrong with a request that must have ended; empty when nothing is. */
export function wrongAtEnd(id: string, picture: Picture, runs: Runs): string[] {
  const { status, outcome, counts, results, fields } = picture;
  const wrong: string[] = [];
  if (status !== 'complete') wrong.push(`it is ${status}`);
  const settled = counts.succeeded + counts.failed + counts.cancelled;
  if (settled !== counts.total) wrong.push(`${settled} of ${counts.total} are settled`);
  const recorded = counts.failed + (fields['results'] === 'discard' ? 0 : counts.succeeded);
  if (results.length !== recorded) wrong.push(`${results.length} results of ${recorded}`);
  const early = /^(deadline|failures)$/.test(fields['endReason'] ?? '');
  if (early && outcome !== 'failed') wrong.push(`it ended for ${fields['endReason']}, ${outcome}`);
  if (outcome !== 'cancelled' && !early && counts.cancelled > 0) wrong.push('some are cancelled');
  for (const { index, failed } of results) {
    const why = wrongResult(id, index, failed, picture, runs);
    if (why) wrong.push(`${index} ${why}`);
  }
  return wrong;
}

/** Whether the last failure of a sub-request was a crash of its workers. */
export const isCrash = ({ failed }: Picture, index: number): boolean =>
  failed[index]?.includes('CrashError') ?? false;

function wrongResult(
  id: string,
  index: number,
  failed: boolean,
  picture: Picture,
  runs: Runs,
): string | undefined {
  const { fields, generation } = picture;
  // What an earlier generation settled is kept, with the number of that generation beside a failure.
  const settledIn = (failed && picture.failed[`${index}:runs`]?.split(' ')[0]) || generation;
  const run = runs.of(id, index, settledIn);
  if (isCrash(picture, index)) {
    const only = fields['maxCrashes'] === '1';
    return only || run.isolated ? undefined : 'failed by crashes of others';
  }
  const ran = run.began > 0 || (fields['redriving'] !== undefined && runs.everBegan(id, index));
  if (!ran) return 'has a result and never ran';
  const attempts = Number(fields['attempts'] ?? 1);
  if (failed && run.failed < attempts) return `failed after ${run.failed} of ${attempts} attempts`;
  return undefined;
}

/** Drops all requests; says what is left of them and of their queues then, which may be tombstones alone. */
export async function leftAfterDrop(
  scenes: readonly Scene[],
  queues: readonly QueueCommands[],
  client: Client,
  keys: () => Promise<readonly string[]>,
): Promise<string[]> {
  for (const { id, request } of scenes) {
    const dropped = await request.drop();
    if (dropped.verdict !== 'dropped') continue;
    for (const queue of queues) await queue.finish(id, dropped.generation, 'dropped');
  }
  // A worker that leaves sweeps up what nobody uses any more.
  for (const queue of queues) await queue.deregister('nobody');
  const wrong: string[] = [];
  for (const key of await keys()) {
    const status = key.startsWith('request:') ? await client.hget(key, 'status') : '';
    if (status !== 'dropped' && status !== 'void') wrong.push(`${key} is left`);
    else if ((await client.pttl(key)) < 0) wrong.push(`the tombstone ${key} stays for ever`);
    await client.unlink(key);
  }
  return wrong;
}

/** Says which keys are neither among those that a queue keeps for a while nor expire. */
export async function leftForEver(client: Client, keys: readonly string[]): Promise<string[]> {
  const wrong: string[] = [];
  for (const key of keys) {
    const ttl = await client.pttl(key);
    const kept = /^(request|failed|results):|:(counters|history)$/.test(key);
    if (!kept || ttl < 0) wrong.push(`${key} is left, TTL ${ttl}`);
  }
  return wrong;
}
