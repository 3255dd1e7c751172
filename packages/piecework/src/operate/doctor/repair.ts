import { Agenda, CLAIMS_PER_TICK, type Connection, type QueueCommands } from '@piecework/protocol';
import { type Finding, many, ok, some, warning } from './finding.js';
import { looksAt } from './request-look.js';
import { forgotten } from './tokens.js';

/** A tick claims some requests; so many ticks at most, or a queue that goes on would keep us here. */
const TICKS = 200;

/**
 * What is safe at any time, as it is what the agenda does anyway: living requests that the queue lost
 * are opened again, those that nobody would look at are put on the agenda, and it is looked at now.
 * @param lost ids that were opened again
 */
export async function repair(
  connection: Connection,
  queue: QueueCommands,
  lost: readonly string[],
  now: number,
): Promise<Finding[]> {
  const noted: string[] = [];
  for await (const page of looksAt(connection, queue.keys, queue.openIds(), now)) {
    for (const look of page) {
      if (look.open === undefined || !forgotten(look, now)) continue;
      await queue.note(look.id, Number(look.open), 0);
      noted.push(look.id);
    }
  }
  const { tended, failed } = await lookNow(connection, queue);
  const done = [
    ...(lost.length > 0 ? [`opened again: ${some(lost)}`] : []),
    ...(noted.length > 0 ? [`put on the agenda: ${some(noted)}`] : []),
    `${many(tended, 'request')} looked at`,
  ];
  const findings = [ok('repair', done.join('; '))];
  if (failed.length > 0)
    findings.push(warning('repair', `some could not be looked at: ${some(failed)}`, 'try again'));
  return findings;
}

async function lookNow(connection: Connection, queue: QueueCommands) {
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
