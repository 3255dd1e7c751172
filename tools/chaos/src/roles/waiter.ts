import { DroppedError, ExpiredError, NotFoundError, PieceworkError } from '@piecework/protocol';
import { type CompletionOutcome, Piecework, type Results } from 'piecework';
import type { WaiterEvent } from '../contract/history.js';
import type { Plan } from '../contract/plan.js';
import { control } from './control.js';
import { enterRole, insist, nowNs, onStop, serve } from './role.js';

/** A waiter: awaits the completion of the requests that the desk names, then reads all results. */

type Read = Pick<Extract<WaiterEvent, { did: 'read' }>, 'results' | 'outcome'>;

const role = enterRole();
const { argument, journal, report } = role;
const { redis, queue, shards, notices } = argument;
const pw = new Piecework({ redis, queue, shards });

async function awaitRequest(
  { id: request, size, steps, live }: Plan,
  after: number,
): Promise<void> {
  const note =
    (failed: 'await' | 'read') =>
    (error: PieceworkError): void =>
      journal.write({ failed, request, code: error.code, message: error.message });
  const handle = pw.request<number>(request);
  const order = size % 2 === 0 ? 'index' : 'completion';
  const read = () => readAll(handle.results({ failed: true, order }));
  const beganAt = Date.now();
  journal.write({ does: 'await', request, ...(after > 0 ? { after } : {}) });
  // If it cannot be read to its end while it runs, it is read again after its completion.
  const early = live
    ? read().catch((error: unknown) => {
        if (error instanceof PieceworkError) return note('read')(error);
        throw error;
      })
    : Promise.resolve();
  // It may fail while something else is awaited.
  early.catch(() => {});
  try {
    const outcome = await insist(() => handle.completion(), note('await'));
    // The server runs on this machine, so both use the same clock.
    const heardAt = Date.now();
    const heardNs = nowNs();
    const { completedAt } = await insist(() => handle.status(), note('await'));
    const { status, generation, counts } = outcome;
    const latencyMs = heardAt - Math.max(beganAt, completedAt ?? heardAt);
    journal.write({
      ...{ did: 'await', request, generation, status },
      ...{ counts: { ...counts }, notices, latencyMs, heardNs },
    });
    // A read that is cut off starts again: only a complete one is written down.
    const whole = (await early) ?? (await insist(read, note('read')));
    journal.write({ did: 'read', request, generation, ...whole, over: true });
    report({ report: 'read', id: request });
  } catch (error) {
    const gone = [DroppedError, ExpiredError, NotFoundError].some((kind) => error instanceof kind);
    const lost = error instanceof PieceworkError && error.code === 'LOST';
    if ((gone || lost) && steps.some(({ act }) => act === 'drop')) {
      report({ report: 'read', id: request });
      return;
    }
    const code = error instanceof PieceworkError ? error.code : String(error);
    report({ report: 'gave up', id: request, code });
  }
}

type Item =
  | { readonly index: number; readonly status: 'succeeded'; readonly value: number }
  | { readonly index: number; readonly status: 'failed' };

async function readAll(items: Results<Item>): Promise<Read> {
  const results: Read['results'][number][] = [];
  for await (const item of items) {
    const { index, status } = item;
    results.push({ index, status, item: item.status === 'succeeded' ? item.value : null });
  }
  const { generation, status, counts } = items.outcome as CompletionOutcome;
  return { results, outcome: { generation, status, counts: { ...counts } } };
}

onStop(() => pw.close());
serve(async (task) => {
  if (task.task === 'await') await awaitRequest(task.plan, task.after);
  if (task.task === 'control') await control(role, pw, task.plan, task.step);
});
report({ report: 'ready' });
