import { Evidence } from '../evidence/evidence.js';
import { Findings } from '../evidence/findings.js';
import { readJournals } from '../evidence/read-journals.js';
import { judgeCap } from './cap.js';
import { judgeCompletion } from './completion.js';
import { judgeDelivery } from './delivery.js';
import { countExecutions } from './executions.js';
import type { Verdict } from './verdict.js';

/**
 * Reads the journals of a run (contract/history.ts) and finds what contradicts the guarantees, as Jepsen's total-queue
 * checker does. The judge knows nothing about Piecework but what is promised to users: it shares no code and no key
 * with it.
 * @throws JournalError when a journal is corrupt
 */
export async function judge(folder: string): Promise<Verdict> {
  const findings = new Findings();
  const evidence = new Evidence(findings);
  const { journals, entries, torn } = await readJournals(folder, (entry) => evidence.take(entry));
  for (const name of torn) {
    if (evidence.processes.named(name).killMs !== undefined) continue;
    findings.add('torn journal', `${name} was not killed, and its last line is not whole`);
  }
  judgeEnd(evidence, findings);
  const requests = judgeCompletion(evidence, findings);
  const items = judgeDelivery(evidence, findings);
  const cap = judgeCap(evidence, findings);
  const taken = evidence.taken.judge(evidence.upheavals, findings);
  const { executions, recoveryMs } = countExecutions(evidence);
  const { firstMs, drainMs, drainedMs, lastToldMs, noticeMs, withoutNoticeMs } = evidence;
  const drainedInMs = known(drainedMs - drainMs);
  return {
    ...{ runs: 1, clean: findings.clean, findings: findings.all(), journals, entries },
    ...{ faults: evidence.processes.faults, acts: evidence.acts, requests, items, executions, cap },
    ...{ taken, upheavals: upheavalsIn(evidence) },
    durations: {
      attackMs: known(drainMs - firstMs),
      drainMs: drainedInMs,
      mostDrainMs: drainedInMs,
      workMs: known(lastToldMs - firstMs),
    },
    samples: { recoveryMs, noticeMs, withoutNoticeMs },
  };
}

function upheavalsIn({ upheavals, requests }: Evidence): Verdict['upheavals'] {
  const all = [...requests].flatMap(({ acks }) => acks);
  return {
    lost: upheavals.losses.length,
    inDoubt: all.filter(({ fromMs, toMs }) => upheavals.mayUndo(fromMs, toMs)).length,
    steps: upheavals.steps.length,
  };
}

/** A run that was cut short proves nothing. */
function judgeEnd(evidence: Evidence, findings: Findings): void {
  const { drainedMs, keysLeft, taken, upheavals, processes } = evidence;
  if (Number.isNaN(drainedMs)) findings.add('cut short', 'it was not drained');
  if (!keysLeft) findings.add('cut short', 'nobody looked for keys that are left');
  for (const key of keysLeft ?? []) {
    const request = /\{(.*?)\}/.exec(key)?.[1] ?? '';
    if (!taken.mayBeHalf(request, upheavals, processes)) findings.add('key left', key);
  }
}

const known = (ms: number): number => (Number.isNaN(ms) ? 0 : ms);
