import { Agenda, Connection, QueueCommands } from '@piecework/protocol';
import { fill } from '../../cast/roles/submitted.js';
import { moveClock } from '../../support/clock.js';
import { given, Hand, type Options, PRODUCER, popAll, type Scene } from '../../support/given.js';
import { payloads, type Stage } from './stage.js';

/*
 * A process that does nothing but tick, whose n-th call goes wrong, while there is something of every
 * kind to repair and nobody else to do it. When it ended, another one ticks.
 */

const ROUNDS = 7;
const ROUND_MS = 8_000;

export async function agendaOf(stage: Stage, how: 'faulty' | 'well'): Promise<Agenda> {
  const connection = Connection.open(await stage.client(how));
  return new Agenda(connection, new QueueCommands(connection, stage.queue));
}

export async function filled(stage: Stage, name: string, n: number, options: Options = {}) {
  const scene = await given.created({
    limit: 2,
    ...options,
    id: stage.id(name),
    queue: stage.queue,
  });
  await fill(scene, payloads(n));
  return scene;
}

async function sealed(stage: Stage, name: string, n: number): Promise<Scene> {
  const scene = await filled(stage, name, n);
  await scene.request.seal(scene.generation, PRODUCER, n);
  return scene;
}

async function repairs(stage: Stage): Promise<string[]> {
  const { queue } = stage;
  const held = await sealed(stage, 'held', 4);
  await new Hand(held, 'dead').hold(2);
  const eaten = await sealed(stage, 'eaten', 3);
  await popAll(eaten);
  const intent = await given.opened({ queue, id: stage.id('intent') });
  const done = await given.sealed({ queue, id: stage.id('done'), items: 0 });
  const lost = { producerLeaseMs: 1_000 };
  const left = await filled(stage, 'left', 3, { ...lost, onProducerLost: 'seal' });
  const off = await filled(stage, 'off', 3, { ...lost, onProducerLost: 'cancel' });

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
    stage.judge(held.id, { counts: { succeeded: 3, failed: 1 } }),
    stage.judge(eaten.id, { counts: { succeeded: 2, failed: 1 } }),
    stage.judge(intent.id, { counts: { succeeded: -1 }, orNothing: true }),
    stage.judge(done.id, { counts: {} }),
    stage.judge(left.id, { counts: { succeeded: 2, failed: 1 } }),
    stage.judge(off.id, { counts: { cancelled: 3 } }),
  ]);
  return judged.flat();
}

export const tickers = { tick: repairs };
