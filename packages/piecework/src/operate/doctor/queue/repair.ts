import { Agenda, CLAIMS_PER_TICK, type Connection, type QueueCommands } from '@piecework/protocol';
import { type Finding, many, ok, some, warning } from '../finding.js';
import { whyUnattended } from './attention.js';
import { readSnapshots } from './request-snapshot.js';

/** The most ticks of one repair: in a busy queue something is always due. */
const TICKS = 200;

/**
 * Does what is safe at any time, because the agenda does it anyway: puts unfinished requests that would not be
 * tended back on the agenda, and ticks it now.
 * @param lost ids that the queue had lost and that were opened again
 */
export async function repair(
  connection: Connection,
  queue: QueueCommands,
  lost: readonly string[],
  now: number,
): Promise<Finding[]> {
  const noted: string[] = [];
  for await (const page of readSnapshots(connection, queue.keys, queue.openIds(), now)) {
    for (const snapshot of page) {
      if (snapshot.open === undefined || !whyUnattended(snapshot, now)) continue;
      await queue.scheduleTend(snapshot.id, Number(snapshot.open), 0);
      noted.push(snapshot.id);
    }
  }
  const { tended, failed } = await tickNow(connection, queue);
  const done = [
    ...(lost.length > 0 ? [`opened again: ${some(lost)}`] : []),
    ...(noted.length > 0 ? [`taken up again: ${some(noted)}`] : []),
    `${many(tended, 'request')} looked after`,
  ];
  const findings = [ok('repair', done.join('; '))];
  if (failed.length > 0)
    findings.push(
      warning('repair', `some could not be looked after: ${some(failed)}`, 'run it again'),
    );
  return findings;
}

async function tickNow(connection: Connection, queue: QueueCommands) {
  const failed: string[] = [];
  let tended = 0;
  let claimed = 0;
  const agenda = new Agenda(connection, queue, {
    onTick: ({ claims }) => {
      claimed = claims.length;
      tended += claimed;
    },
    onError: (thrown) => failed.push((thrown as Error).message),
  });
  for (let i = 0; i < TICKS; i += 1) {
    await agenda.tick();
    if (claimed < CLAIMS_PER_TICK) break;
  }
  return { tended, failed };
}
