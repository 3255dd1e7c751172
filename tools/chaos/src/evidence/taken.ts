import { TAKEN, type Taken, type TakerEvent } from '../contract/history.js';
import type { Findings } from './findings.js';
import type { Processes } from './processes.js';
import type { Upheavals } from './upheavals.js';

/*
 * The other queues. No key is put twice on purpose. Each key whose put was acknowledged is taken, perhaps several
 * times, until its end counts. By the server's clock, one process has it at a time. Once its end has counted, nobody
 * takes it again. DelayedTasks run their tasks at least once, and do not report since when a process has a task.
 *
 * Of a delayed task a process hears that the server has answered its end, not that the end counted. An end does not
 * count if the server lost the take before it: the server believes that nobody has run the task, and hands it out again.
 */

/** Numbers of keys that were put, taken and ended in one queue. */
export interface TakenTally {
  readonly put: number;
  readonly taken: number;
  readonly ended: number;
}

interface Take {
  readonly process: string;
  readonly ms: number;
  readonly atMs: number;
  readonly holdMs: number;
  /** When this process announced its end. */
  endsMs: number;
}

interface End {
  readonly fromMs: number;
  readonly ms: number;
  /** When its process heard that it had the key. */
  readonly takenMs: number;
}

interface Key {
  /** When the put was sent, and when it was acknowledged. */
  acknowledged: { readonly fromMs: number; readonly toMs: number } | undefined;
  announced: { readonly ms: number; readonly process: string } | undefined;
  /** Whether a put was refused, or its outcome unknown, so that it was sent again. */
  again: boolean;
  readonly takes: Take[];
  readonly ends: End[];
}

/** A take may be written down after the end of its key, if its reply was late by this many leases. */
const LATE_LEASES = 3;

export class TakenKeys {
  readonly #keys = new Map<Taken, Map<string, Key>>(TAKEN.map((queue) => [queue, new Map()]));

  take(event: TakerEvent, process: string, ms: number): void {
    if (event.key === undefined) return;
    const key = this.#named(event.queue, event.key);
    if ('failed' in event) key.again ||= event.failed === 'put';
    else if ('does' in event && event.does === 'put') key.announced ??= { ms, process };
    else if (!('does' in event) && event.did === 'put')
      key.acknowledged = { fromMs: Number(event.sinceNs) / 1e6, toMs: ms };
    else if (!('does' in event) && event.did === 'take') {
      const { atMs = Number.NaN, holdMs } = event;
      key.takes.push({ ...{ process, ms, atMs, holdMs }, endsMs: Number.POSITIVE_INFINITY });
    } else {
      const own = key.takes.findLast((take) => take.process === process);
      if (own && 'does' in event) own.endsMs = ms;
      if ('did' in event && event.did === 'end' && event.counted)
        key.ends.push({ fromMs: own?.endsMs ?? ms, ms, takenMs: own?.ms ?? ms });
    }
  }

  /**
   * Whether the server may have half of a submission: it lost the first writes, and the submitting process was killed,
   * without an answer, before it started again.
   */
  mayBeHalf(request: string, upheavals: Upheavals, processes: Processes): boolean {
    const { acknowledged, announced } = this.#keys.get('delayed')?.get(request) ?? {};
    const { killMs } = announced ? processes.named(announced.process) : {};
    if (acknowledged || !announced || killMs === undefined) return false;
    return upheavals.mayUndo(announced.ms, killMs);
  }

  judge(upheavals: Upheavals, findings: Findings): Record<Taken, TakenTally> {
    const tallies = {} as Record<Taken, TakenTally>;
    for (const queue of TAKEN) {
      const keys = [...(this.#keys.get(queue) ?? [])];
      for (const [name, key] of keys) judgeKey(queue, name, key, upheavals, findings);
      const count = (is: (key: Key) => boolean) => keys.filter(([, key]) => is(key)).length;
      tallies[queue] = {
        put: count((key) => key.acknowledged !== undefined),
        taken: count((key) => key.takes.length > 0),
        ended: count((key) => key.ends.length > 0),
      };
    }
    return tallies;
  }

  #named(queue: Taken, name: string): Key {
    const keys = this.#keys.get(queue) as Map<string, Key>;
    const key = keys.get(name) ?? {
      ...{ acknowledged: undefined, announced: undefined, again: false, takes: [], ends: [] },
    };
    keys.set(name, key);
    return key;
  }
}

function judgeKey(
  queue: Taken,
  name: string,
  key: Key,
  upheavals: Upheavals,
  findings: Findings,
): void {
  const { acknowledged, announced, takes, ends } = key;
  const where = `${queue}: ${name}`;
  if (takes.length > 0 && !announced) findings.add('unexpected', `${where}: nobody put it`);
  takes.sort((a, b) => a.ms - b.ms);
  const wasAboutToEnd = takes.some(({ endsMs }) => Number.isFinite(endsMs));
  const mayBeLost = acknowledged && upheavals.mayUndo(acknowledged.fromMs, acknowledged.toMs);
  if (acknowledged && !mayBeLost && !wasAboutToEnd)
    findings.add('lost', `${where}: put, taken ${takes.length} times, never ended`);
  // Tasks are run at least once; beside a zombie they may be twice.
  if (queue !== 'delayed') judgeHands(where, takes, upheavals, findings);
  // A key that is put again exists again.
  if (key.again && queue !== 'ids') return;
  // The journals are read one after another.
  const counted = ends
    .toSorted((a, b) => a.ms - b.ms)
    .filter(
      ({ fromMs, ms, takenMs }) =>
        !upheavals.mayUndo(fromMs, ms) &&
        !(queue === 'delayed' && upheavals.mayUndoHeard({ ms: takenMs })),
    );
  const [first, second] = counted;
  if (first && second && queue !== 'delayed' && !upheavals.steppedBetween(first.ms, second.ms))
    findings.add('counted twice', `${where}: its end counted ${counted.length} times`);
  // A put that has ended is forgotten soon. One that is still being asked for comes again then.
  if (queue === 'delayed' && first && acknowledged && acknowledged.toMs > first.ms) return;
  const back = takes.find(({ ms, holdMs }) => first && ms > first.ms + LATE_LEASES * holdMs);
  if (back) findings.add('came back', `${where}: taken by ${back.process} after its end counted`);
}

function judgeHands(
  where: string,
  takes: readonly Take[],
  upheavals: Upheavals,
  findings: Findings,
): void {
  const byServer = takes.toSorted((a, b) => a.atMs - b.atMs);
  for (const [i, second] of byServer.entries()) {
    const first = byServer[i - 1];
    if (!first || second.atMs >= first.atMs + first.holdMs || first.endsMs <= second.ms) continue;
    // When a take was asked for is not known.
    if (upheavals.mayUndoHeard(first)) continue;
    if (upheavals.between(Math.min(first.ms, second.ms), Math.max(first.ms, second.ms))) continue;
    const forMs = first.atMs + first.holdMs - second.atMs;
    const hands = `${first.process} and ${second.process}`;
    findings.add('in two hands', `${where}: ${hands}, for ${forMs} ms`);
  }
}
