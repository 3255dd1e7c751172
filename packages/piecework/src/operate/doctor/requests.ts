import { type Connection, pause, type QueueCommands } from '@piecework/protocol';
import { isLiving, wrongBooks } from './books.js';
import { type Check, error, type Finding, many, ok, some, warning } from './finding.js';
import { requestTimesAhead, TIMES_AHEAD_ADVICE } from './future.js';
import { looksAt, type RequestLook } from './request-look.js';
import { slowOnes, stuckOnes } from './running.js';
import { forgotten } from './tokens.js';

/** Requests of which each has a finding of its own; the others are named together. */
const TOLD = 20;
/** Until what looked wrong is looked at again: a call under way between two reads has ended by then. */
const AGAIN_MS = 250;

interface Suspicion {
  readonly check: Check;
  readonly id: string;
  readonly why: string;
}

/**
 * The books of every open request, and whether anybody will look at it. The two sides of a request are
 * read one after the other, while work goes on; so a suspicion counts only when a second look has it too. And
 * whether any handler runs far longer than usual, or than `slowMs`.
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
  for await (const page of looksAt(connection, queue.keys, queue.openIds(), now)) {
    open += page.length;
    for (const look of page) {
      if (suspicions(look, now).length > 0) suspects.add(look.id);
      if (look.pending > look.returned) inFlight.push(look.id);
    }
  }
  const found: Suspicion[] = [];
  if (suspects.size > 0) {
    await pause(AGAIN_MS);
    for await (const page of looksAt(connection, queue.keys, suspects, now + AGAIN_MS)) {
      found.push(...page.flatMap((look) => suspicions(look, now + AGAIN_MS)));
    }
  }
  const workers = await queue.workers();
  const slow = await slowOnes(connection, workers, inFlight, slowMs);
  found.push(...slow.map((one) => ({ check: 'running' as const, ...one })));
  const stuck = stuckOnes(workers);
  found.push(...stuck.map((one) => ({ check: 'running' as const, ...one })));
  const of = (check: Check) => found.filter((one) => one.check === check);
  return [
    ...tell(of('books'), 'books', `the books of ${many(open, 'open request')} are right`, {
      level: error,
      advice:
        'somebody wrote to its keys, or its server lost writes: drop it and submit it again, and see who may write there',
    }),
    ...tell(of('tokens'), 'tokens', 'every open request is looked at in time', {
      level: error,
      advice:
        '`piecework doctor --repair` looks at it now; a worker, or whoever waits for a request, does too',
    }),
    ...tell(of('clocks'), 'clocks', 'no lease ends later than it lasts', {
      level: warning,
      advice: TIMES_AHEAD_ADVICE,
    }),
    ...tell(of('running'), 'running', 'no handler runs far longer than usual', {
      level: warning,
      advice:
        'see what its handler waits for (`piecework status ID --running`); `attemptTimeoutMs` would end such an attempt, a restart of the worker gives its work to others',
    }),
    ...tell(of('orphans'), 'orphans', 'every open id has its request', {
      level: warning,
      advice: '`piecework doctor --repair` clears it up, as the next look at the agenda does',
    }),
  ];
}

function suspicions(look: RequestLook, now: number): Suspicion[] {
  const { id, open, fields } = look;
  // It ended meanwhile.
  if (open === undefined) return [];
  const unseen = forgotten(look, now);
  const suspicion = (check: Check, why: string | undefined) => (why ? [{ check, id, why }] : []);
  const status = fields['status'];
  if (
    fields['generation'] !== open ||
    status === undefined ||
    status === 'void' ||
    status === 'dropped'
  ) {
    // An intent of a moment ago; a look finds out whether its request comes.
    return suspicion('orphans', unseen && `it is open without a request, and ${unseen}`);
  }
  return [
    ...suspicion('books', isLiving(look) ? wrongBooks(look) : undefined),
    ...suspicion('tokens', unseen),
    ...suspicion('clocks', isLiving(look) ? requestTimesAhead(look, now) : undefined),
  ];
}

function tell(
  found: readonly Suspicion[],
  check: Check,
  allRight: string,
  { level, advice }: { level: typeof error; advice: string },
): Finding[] {
  if (found.length === 0) return [ok(check, allRight)];
  const single = found.slice(0, TOLD).map(({ id, why }) => level(check, `${id}: ${why}`, advice));
  const others = found.slice(TOLD).map(({ id }) => id);
  if (others.length === 0) return single;
  return [...single, level(check, `the same kind of thing: ${some(others)}`, advice)];
}
