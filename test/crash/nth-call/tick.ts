import { Agenda, Connection, QueueCommands } from '@piecework/protocol';
import { moveClock } from '../../support/clock.js';
import { given, Hand, popAll } from '../../support/given.js';
import type { Stage } from './stage.js';

/*
 * A process that does nothing but tick, whose n-th call goes wrong, while there is something of every
 * kind to repair and nobody else to do it. When it ended, another one ticks.
 */

const ROUNDS = 7;
const ROUND_MS = 8_000;

async function agendaOf(stage: Stage, how: 'faulty' | 'well'): Promise<Agenda> {
  const connection = Connection.open(await stage.client(how));
  return new Agenda(connection, new QueueCommands(connection, stage.queue));
}

async function repairs(stage: Stage): Promise<string[]> {
  const { queue } = stage;
  const held = await given.sealed({ queue, id: stage.id('held'), items: 4, limit: 2 });
  await new Hand(held, 'dead').hold(2);
  const eaten = await given.sealed({ queue, id: stage.id('eaten'), items: 2, limit: 2 });
  await popAll(eaten);
  const intent = await given.opened({ queue, id: stage.id('intent') });
  const done = await given.sealed({ queue, id: stage.id('done'), items: 0 });
  const lost = { queue, items: 3, producerLeaseMs: 1_000 };
  const left = await given.filled({ ...lost, id: stage.id('left'), onProducerLost: 'seal' });
  const off = await given.filled({ ...lost, id: stage.id('off'), onProducerLost: 'cancel' });

  let agenda = await agendaOf(stage, 'faulty');
  for (let round = 0; round < ROUNDS; round += 1) {
    moveClock(ROUND_MS);
    // What fails here is told to nobody: the next tick takes it up.
    await agenda.tick().catch(() => {});
    if (stage.faults.dead) agenda = await agendaOf(stage, 'well');
  }
  await (await stage.worker('well')).start();
  await stage.heal(Promise.resolve());
  const judged = await Promise.all([
    stage.judge(held.id, { counts: { succeeded: 4 } }),
    stage.judge(eaten.id, { counts: { succeeded: 2 } }),
    stage.judge(intent.id, { counts: { succeeded: -1 }, orNothing: true }),
    stage.judge(done.id, { counts: {} }),
    stage.judge(left.id, { counts: { succeeded: 3 } }),
    stage.judge(off.id, { counts: { cancelled: 3 } }),
  ]);
  return judged.flat();
}

export const tickers = { tick: repairs };
