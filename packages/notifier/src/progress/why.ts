import { ENDED_BY, isOverdueAt, type LongestRun, lasting, TIGHT_MEMORY } from '@piecework/protocol';
import type { Snapshot, WaitingFor, Why } from './snapshot.js';
import { aliveAt, fleetFor, lackOfWorker, stuckText, unfitText } from './why-fleet.js';
import {
  ago,
  capitalised,
  dueText,
  isSilent,
  listed,
  n,
  onSilent,
  producerText,
  seconds,
  silenceOf,
  slotsText,
  timeOf,
} from './why-words.js';

/*
 * The one maker of the sentence that says why a request is not further, or why it ended as it did. `status`, `list`,
 * `top`, the dashboard and a `TimeoutError` all show it. It is a function of what was read (`standstill.ts` reads it).
 *
 * The first cause of CAUSES that applies makes the sentence. They are in the order in which they hide each other: first
 * what only a person ends (a pause, no worker), then what ends by itself (a hold, a lease), then what merely takes time
 * (its own handlers, a retry, slots that others use).
 */

/** Why it is not further; of a complete request, why it ended so. */
export function whyOf(seen: Snapshot): Why {
  for (const cause of CAUSES) {
    const found = cause(seen);
    if (!found) continue;
    const { why, waitingFor, advice } = found;
    const also = seen.status === 'complete' ? '' : alsoOf(seen, waitingFor);
    return { why: `${why}${also}${advice ? `. ${capitalised(advice)}` : ''}`, waitingFor };
  }
  return { why: 'it is about to go on', waitingFor: undefined };
}

interface Cause {
  readonly why: string;
  readonly waitingFor?: WaitingFor | undefined;
  /** What a person can do. */
  readonly advice?: string | undefined;
}

const CAUSES: readonly ((seen: Snapshot) => Cause | undefined)[] = [
  ended,
  cancelling,
  pastDeadline,
  paused,
  queuePaused,
  unserved,
  held,
  withoutWorker,
  silence,
  blockedWorker,
  isolation,
  overdueHandler,
  fullServer,
  ofProducer,
  retries,
  noSlot,
  runs,
];

function ended({ status, outcome, endReason, counts, toleratedFailures }: Snapshot) {
  if (status !== 'complete') return undefined;
  const { total, succeeded, failed, cancelled } = counts;
  if (endReason) {
    const bound = endReason === 'failures' ? `, more than the ${toleratedFailures} tolerated` : '';
    const cut = `${n(succeeded)} succeeded, ${n(failed)} failed and ${n(cancelled)} were cancelled`;
    return { why: `it ended early, as ${ENDED_BY[endReason]}${bound}; ${cut}` };
  }
  if (outcome === 'cancelled')
    return { why: `it was cancelled; ${n(succeeded)} of ${n(total)} succeeded` };
  if (total === 0) return { why: 'it succeeded: it had no sub-requests' };
  if (failed === 0) return { why: `it succeeded: all ${n(total)} sub-requests did` };
  const share = `${n(failed)} of ${n(total)} sub-requests failed`;
  return outcome === 'succeeded'
    ? { why: `it succeeded: ${share}, and it tolerates ${toleratedFailures}` }
    : { why: `it failed: ${share}, and it tolerates ${toleratedFailures}` };
}

function cancelling(seen: Snapshot): Cause | undefined {
  const { status, endReason, counts, silentWorkers, readAt } = seen;
  if (status !== 'cancelling') return undefined;
  const { inFlight } = counts;
  const because = endReason && endReason !== 'cancel' ? `, as ${ENDED_BY[endReason]}` : '';
  const begin = `it is being cancelled${because}; `;
  const left = silentWorkers.length > 0 ? (withoutWorker(seen) ?? silence(seen)) : undefined;
  if (left) return { ...left, waitingFor: undefined, why: begin + left.why };
  if (inFlight === 0) return { why: `${begin}nothing of it runs` };
  const longest = longestOf(seen);
  const long = longest ? `; sub-request ${runText(longest, readAt)}` : '';
  return { why: `${begin}${n(inFlight)} ${inFlight === 1 ? 'has' : 'have'} not ended yet${long}` };
}

function pastDeadline({ deadline, readAt }: Snapshot) {
  if (deadline === undefined || deadline > readAt) return undefined;
  const when = 'it ends when a worker runs, or somebody waits for it';
  return { why: `its deadline passed ${ago(deadline, readAt)}; ${when}` };
}

function paused(seen: Snapshot): Cause | undefined {
  if (!seen.paused) return undefined;
  return { why: `it is paused${stillRun(seen)}`, waitingFor: 'resume', advice: 'resume it' };
}

function queuePaused(seen: Snapshot): Cause | undefined {
  const { queue, readAt } = seen;
  const { pausedUntil, pausedSince } = queue;
  if (pausedUntil === undefined || (pausedUntil !== 0 && pausedUntil <= readAt)) return undefined;
  const why = `its queue ${lastingState('paused', pausedSince, pausedUntil, readAt)}`;
  const advice = pausedUntil === 0 ? 'resume the queue' : 'wait, or resume the queue';
  return { why: `${why}${stillRun(seen)}`, waitingFor: 'queue', advice };
}

/** 'is paused until 2026-11-28T20:05:00Z (in 5 min; so far for 20 s)'; `until` 0: without an end */
function lastingState(state: string, since: number | undefined, until: number, now: number) {
  const sinceText = since === undefined ? '' : `so far for ${seconds(now - since)}`;
  const parts = [...(until === 0 ? [] : [`in ${lasting(until - now)}`]), sinceText];
  const beside = parts.filter((part) => part !== '').join('; ');
  const end = until === 0 ? '' : ` until ${timeOf(until)}`;
  return `is ${state}${end}${beside === '' ? '' : ` (${beside})`}`;
}

/** '; 2 still run; 3 are on a worker last seen 20 s ago' */
function stillRun({ running, silentWorkers, readAt }: Snapshot): string {
  const silent = silentWorkers.reduce((sum, { inFlight }) => sum + inFlight, 0);
  const live = Math.max(0, running - silent);
  const run = live === 0 ? '' : `; ${n(live)} still ${live === 1 ? 'runs' : 'run'}`;
  return silent === 0 ? run : `${run}; ${onSilent(silentWorkers, readAt)}`;
}

function unserved(seen: Snapshot): Cause | undefined {
  const { queue, parked, counts } = seen;
  const met =
    parked || (queue.workers.some(aliveAt(seen)) && counts.ready > 0 && counts.inFlight === 0);
  const lack = met ? lackOfWorker(seen) : undefined;
  return lack?.waitingFor === 'task' ? lack : undefined;
}

function held(seen: Snapshot): Cause | undefined {
  const { heldUntil, heldSince, heldForMemory, readAt } = seen;
  if (heldUntil === undefined) return undefined;
  if (heldForMemory) return lackOfRoom(seen);
  if (heldSince === 'created')
    return {
      why: `its start is delayed until ${timeOf(heldUntil)} (in ${lasting(heldUntil - readAt)})`,
      waitingFor: 'time',
      advice: 'wait, or cancel it and submit it without the delay',
    };
  return {
    why: `it ${lastingState('held by its handler', heldSince, heldUntil, readAt)}${stillRun(seen)}`,
    waitingFor: 'time',
    advice: 'wait: nothing ends a hold earlier',
  };
}

function withoutWorker(seen: Snapshot): Cause | undefined {
  const { counts, silentWorkers, readAt, queue } = seen;
  const last = silentWorkers.at(-1);
  if (counts.inFlight === 0)
    return counts.ready + counts.delayed > 0 ? lackOfWorker(seen) : undefined;
  // Somebody would have taken over by now.
  if (!last || last.leaseEndsAt > readAt || queue.workers.some(aliveAt(seen))) return undefined;
  const lack = lackOfWorker({ ...seen, queue: { ...queue, workers: [] } });
  return lack && { ...lack, why: `${onSilent(silentWorkers, readAt)}; ${lack.why}` };
}

function silence(seen: Snapshot): Cause | undefined {
  const { silentWorkers, readAt, queue } = seen;
  if (silentWorkers.length === 0) return undefined;
  const advice = queue.workers.some(aliveAt(seen))
    ? 'wait: another worker takes over by itself'
    : 'start another worker, as its queue has none';
  return { why: silenceOf(silentWorkers, readAt), waitingFor: 'lease', advice };
}

/** Its lease is renewed by another thread. */
function blockedWorker(seen: Snapshot): Cause | undefined {
  const { holders, queue, readAt } = seen;
  const isAlive = aliveAt(seen);
  const renewedAt = (id: string) => holders.find(({ worker }) => worker === id)?.renewedAt;
  const blocked = queue.workers.find((one) => renewedAt(one.id) !== undefined && !isAlive(one));
  if (!blocked) return undefined;
  const why = `worker ${blocked.id} has reported nothing for ${lasting(readAt - blocked.seenAt)}`;
  const waitingFor = 'handler';
  if ((renewedAt(blocked.id) ?? 0) > blocked.seenAt)
    return {
      why: `${why}, and its lease is renewed`,
      waitingFor,
      advice: 'a handler may block its event loop; if it stays so, end that process',
    };
  const advice = 'wait: if it has ended, another worker takes over when its lease is over';
  return { why: `${why}, and the renewal of its lease is not due yet`, waitingFor, advice };
}

/** Its sub-requests whose workers died wait on a worker until nothing else runs there. */
function isolation(seen: Snapshot): Cause | undefined {
  const by = seen.queue.workers
    .filter(aliveAt(seen))
    .find(({ suspects }) => suspects?.wait && suspects.requests.includes(seen.id));
  if (!by) return undefined;
  return {
    why: `sub-requests of it whose workers died wait to run alone on worker ${by.id}, until the handlers beside them end`,
    waitingFor: 'slots',
    advice: 'wait, or start another worker',
  };
}

/** The handler of the request that has run longest, as the workers last reported, and on which worker. */
function longestOf(
  seen: Snapshot,
): { readonly run: LongestRun; readonly worker: string } | undefined {
  if (seen.counts.inFlight === 0) return undefined;
  const runs = seen.queue.workers
    .filter(aliveAt(seen))
    .flatMap(({ id, longest }) =>
      longest.filter(({ requestId }) => requestId === seen.id).map((run) => ({ run, worker: id })),
    );
  return runs.sort((a, b) => a.run.startedAt - b.run.startedAt)[0];
}

function overdueHandler(seen: Snapshot): Cause | undefined {
  const longest = longestOf(seen);
  if (!longest || !isOverdueAt(longest.run, seen.readAt)) return undefined;
  const others = seen.running - 1;
  const rest = others > 0 ? `; ${n(others)} more ${others === 1 ? 'runs' : 'run'}` : '';
  return {
    why: `sub-request ${runText(longest, seen.readAt)}${rest}`,
    waitingFor: 'handler',
    advice: 'if it hangs, end that process; attemptTimeoutMs bounds an attempt',
  };
}

/** '7 has been running for 40 s on host-1-x, usually 20 ms' */
function runText(
  { run: { index, startedAt, medianMs }, worker }: NonNullable<ReturnType<typeof longestOf>>,
  now: number,
): string {
  const usual = medianMs === undefined ? '' : `, usually ${lasting(medianMs)}`;
  return `${index} has been running for ${lasting(now - startedAt)} on ${worker}${usual}`;
}

/** Of a request that no worker has held yet. */
function fullServer(seen: Snapshot): Cause | undefined {
  const { counts, running, keepsResults } = seen;
  if (counts.ready + counts.inFlight === 0 || running > 0) return undefined;
  return memoryShare(seen) < (keepsResults ? TIGHT_MEMORY : 1) ? undefined : lackOfRoom(seen);
}

function lackOfRoom(seen: Snapshot): Cause {
  const share = memoryShare(seen);
  const said = `Redis is ${share >= 1 ? 'full' : 'nearly full'}`;
  // Workers hold until there is more room than that; and the request may be on another server than its queue.
  const part = share < TIGHT_MEMORY ? '' : ` (${Math.floor(share * 100)} % of maxmemory)`;
  return {
    why: `${said}${part}, and its results need room${stillRun(seen)}`,
    waitingFor: 'memory',
    advice: 'raise maxmemory, or drop complete requests',
  };
}

const memoryShare = ({ queue: { memory } }: Snapshot) =>
  memory === undefined || memory.most === 0 ? 0 : memory.used / memory.most;

function ofProducer({ producer, counts, readAt }: Snapshot): Cause | undefined {
  const { ready, inFlight, delayed, total } = counts;
  if (!producer || ready + inFlight + delayed > 0) return undefined;
  const all = total === 0 ? 'nothing was added yet' : 'all that was added is done';
  return {
    why: `${all}, and its producer has not sealed it; ${producerText(producer, readAt)}`,
    waitingFor: 'producer',
    advice: 'cancel the request if nothing more comes',
  };
}

function retries({ counts, retry, readAt }: Snapshot): Cause | undefined {
  const { ready, inFlight, delayed } = counts;
  if (ready + inFlight > 0 || delayed === 0) return undefined;
  return {
    why: `${n(delayed)} ${delayed === 1 ? 'waits for its' : 'wait for their'} next attempt${dueText(retry, delayed, readAt)}`,
    waitingFor: 'retry',
    advice: 'wait, or cancel the request if it cannot succeed',
  };
}

/** Nothing of it runs, although it could. */
function noSlot(seen: Snapshot): Cause | undefined {
  const { counts, running, readAt, others, priority } = seen;
  if (running > 0 || counts.ready + counts.inFlight === 0) return undefined;
  const { workers, slots, free, freeAt, stuck, unfit } = fleetFor(seen);
  const alsoUnfit = unfitText(unfit);
  if (free > 0) {
    const were = `${n(free)} of ${slotsText(slots)} ${free === 1 ? 'was' : 'were'} free`;
    return {
      why: `it waits for its turn; ${were} when last reported, ${ago(freeAt, readAt)}${alsoUnfit}`,
      advice: unfit?.advice,
    };
  }
  if (slots === 0) return unfit;
  const oldest = workers
    .flatMap(({ longest }) => longest.filter(({ requestId }) => requestId !== seen.id))
    .sort((a, b) => a.startedAt - b.startedAt)[0];
  const takers = others.slice(0, 2).map((one) => `${one.id} (priority ${one.priority})`);
  if (others.length > 2) takers.push(`${others.length - 2} more`);
  const of = takers.length > 0 ? ` of ${listed(takers)}` : '';
  const since = oldest ? `, the oldest running for ${lasting(readAt - oldest.startedAt)}` : '';
  const fleet = `${workers.length === 1 ? 'one worker' : `${n(workers.length)} workers`}`;
  const isAfter = others.some((one) => one.priority < priority);
  const turn = isAfter
    ? `it has priority ${priority}, and smaller numbers go first`
    : `it has priority ${priority}, and gets its share of the next free slots`;
  const all = `${slots === 1 ? 'the only slot' : `all ${slotsText(slots)}`} of ${fleet}`;
  const taken = `${all} ${slots === 1 ? 'is' : 'are'} taken`;
  if (stuck?.slots === slots)
    return { why: `${taken} ${stuck.by}${alsoUnfit}`, waitingFor: 'slots', advice: stuck.advice };
  return {
    why: `${taken} by handlers${of}${since}${stuck ? stuckText(stuck) : `; ${turn}`}${alsoUnfit}`,
    waitingFor: 'slots',
    advice:
      stuck?.advice ??
      unfit?.advice ??
      'more workers let it start sooner; they are needed if those handlers wait for it',
  };
}

function runs(seen: Snapshot): Cause | undefined {
  const { counts, running, limit, readAt } = seen;
  const { ready, inFlight, total } = counts;
  const isAllSettled = total === counts.succeeded + counts.failed + counts.cancelled;
  if (isAllSettled && total > 0) return { why: 'all is done, and its end is being recorded' };
  if (inFlight + ready === 0) return undefined;
  if (running === 0 && inFlight === 0) return { why: 'it waits for its turn' };
  const waits = ready + inFlight - running;
  const longest = longestOf(seen);
  const long = longest ? `; sub-request ${runText(longest, readAt)}` : '';
  const verb = running === 1 ? 'runs' : 'run';
  if (waits === 0) return { why: `${n(running)} ${verb}, and none waits for a slot${long}` };
  const wait = `${n(waits)} ${waits === 1 ? 'waits' : 'wait'}`;
  const { slots, free, stuck, unfit } = fleetFor(seen);
  if (limit !== null && running >= limit) {
    const why = `${n(running)} ${verb}, as many as its limit allows, and ${wait}${long}`;
    if (free === 0) return { why };
    return {
      why,
      advice: `a higher limit would use the ${n(free)} of ${slotsText(slots)} that ${free === 1 ? 'is' : 'are'} free`,
    };
  }
  const isFull = slots > 0 && free === 0;
  const full = slots === 1 ? 'the only one is taken' : `all ${n(slots)} are taken`;
  const slot = isFull ? ` for a slot: ${full}${stuckText(stuck)}` : '';
  const lack = lackOfWorker(seen);
  const gone = lack ? `; ${lack.why}` : '';
  const why = `${n(running)} ${verb} and ${wait}${slot}${gone}${unfitText(unfit)}${long}`;
  return { why, advice: lack?.advice ?? (isFull ? stuck?.advice : undefined) ?? unfit?.advice };
}

/** What is to be known besides the cause. */
function alsoOf(seen: Snapshot, waitingFor: WaitingFor | undefined): string {
  const { counts, deadline, producer, readAt, retry } = seen;
  const parts: string[] = [];
  if (counts.delayed > 0 && waitingFor !== 'retry')
    parts.push(
      `${n(counts.delayed)} ${counts.delayed === 1 ? 'waits for its' : 'wait for their'} next attempt${dueText(retry && { ...retry, lastError: undefined }, counts.delayed, readAt)}`,
    );
  if (producer && waitingFor !== 'producer' && isSilent(producer, readAt))
    parts.push(producerText(producer, readAt));
  if (deadline !== undefined && deadline > readAt)
    parts.push(`its deadline ends it in ${lasting(deadline - readAt)}`);
  return parts.map((part) => `; ${part}`).join('');
}
