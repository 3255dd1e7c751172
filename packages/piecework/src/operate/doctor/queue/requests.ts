import { type Connection, pause, type QueueCommands } from '@piecework/protocol';
import { type Check, error, type Finding, many, ok, some, warning } from '../finding.js';
import { whyUnattended } from './attention.js';
import { isUnfinished, wrongBooks } from './books.js';
import { type RequestSnapshot, readSnapshots } from './request-snapshot.js';
import { slowOnes, stuckOnes } from './slow-handlers.js';
import { requestTimesAhead, TIMES_AHEAD_ADVICE } from './times-ahead.js';

/** How many requests get a finding of their own; the others are named together. */
const SINGLE = 20;
/** After this time, in ms, a suspicion is checked again: a call that fell between two reads has ended by then. */
const AGAIN_MS = 250;

interface Suspicion {
  readonly check: Check;
  readonly id: string;
  readonly why: string;
}

/**
 * Checks the books of every open request, whether it will be tended in time, and whether a handler runs far longer
 * than usual, or than `slowMs`. The two sides of a request are read one after the other while work continues; so a
 * suspicion counts only if a second read confirms it.
 */
export async function checkRequests(
  connection: Connection,
  queue: QueueCommands,
  now: number,
  slowMs: number | undefined,
): Promise<Finding[]> {
  const suspects = new Set<string>();
  const inFlight: string[] = [];
  let open = 0;
  for await (const page of readSnapshots(connection, queue.keys, queue.openIds(), now)) {
    open += page.length;
    for (const snapshot of page) {
      if (suspicions(snapshot, now).length > 0) suspects.add(snapshot.id);
      if (snapshot.pending > snapshot.returned) inFlight.push(snapshot.id);
    }
  }
  const found: Suspicion[] = [];
  if (suspects.size > 0) {
    await pause(AGAIN_MS);
    for await (const page of readSnapshots(connection, queue.keys, suspects, now + AGAIN_MS)) {
      found.push(...page.flatMap((snapshot) => suspicions(snapshot, now + AGAIN_MS)));
    }
  }
  const workers = await queue.workers();
  const slow = await slowOnes(connection, workers, inFlight, slowMs);
  found.push(...slow.map((one) => ({ check: 'running' as const, ...one })));
  const stuck = stuckOnes(workers);
  found.push(...stuck.map((one) => ({ check: 'running' as const, ...one })));
  const of = (check: Check) => found.filter((one) => one.check === check);
  return [
    ...tell(of('books'), 'books', `the counts of ${many(open, 'open request')} are right`, {
      level: error,
      advice:
        'drop it and submit it again; its server lost writes, a worker lacked a right in the middle of a script, or another program wrote to its keys: check who may',
    }),
    ...tell(of('tokens'), 'tokens', 'every open request is looked after in time', {
      level: error,
      advice: 'run `piecework doctor --repair`, which looks after it now, or start a worker',
    }),
    ...tell(of('clocks'), 'clocks', 'no lease ends later than its duration allows', {
      level: warning,
      advice: TIMES_AHEAD_ADVICE,
    }),
    ...tell(of('running'), 'running', 'no handler runs far longer than usual', {
      level: warning,
      advice:
        'find out what its handler waits for (`piecework status ID --running`); `attemptTimeoutMs` ends such attempts, and a restart of the worker gives its work to others',
    }),
    ...tell(of('orphans'), 'orphans', 'every open id has its request', {
      level: warning,
      advice: 'run `piecework doctor --repair`; a running worker clears it up soon, too',
    }),
  ];
}

function suspicions(snapshot: RequestSnapshot, now: number): Suspicion[] {
  const { id, open, fields } = snapshot;
  // It ended meanwhile.
  if (open === undefined) return [];
  const unseen = whyUnattended(snapshot, now);
  const suspicion = (check: Check, why: string | undefined) => (why ? [{ check, id, why }] : []);
  const status = fields['status'];
  if (
    fields['generation'] !== open ||
    status === undefined ||
    status === 'void' ||
    status === 'dropped'
  ) {
    // Perhaps an intent of a moment ago; the tend of it finds out whether its request was created.
    return suspicion('orphans', unseen && `it is open without a request, and ${unseen}`);
  }
  return [
    ...suspicion('books', isUnfinished(snapshot) ? wrongBooks(snapshot) : undefined),
    ...suspicion('tokens', unseen),
    ...suspicion('clocks', isUnfinished(snapshot) ? requestTimesAhead(snapshot, now) : undefined),
  ];
}

function tell(
  found: readonly Suspicion[],
  check: Check,
  allRight: string,
  { level, advice }: { level: typeof error; advice: string },
): Finding[] {
  if (found.length === 0) return [ok(check, allRight)];
  const single = found.slice(0, SINGLE).map(({ id, why }) => level(check, `${id}: ${why}`, advice));
  const others = found.slice(SINGLE).map(({ id }) => id);
  if (others.length === 0) return single;
  return [...single, level(check, `the same for ${some(others)}`, advice)];
}
