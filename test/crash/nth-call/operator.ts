import { EndedError } from '@piecework/protocol';
import type { Admin } from 'piecework';
import { stateOf } from '../../support/compact.js';
import { keysOf } from '../../support/leaks.js';
import { peek } from '../../support/peek.js';
import { until } from '../../support/until.js';
import { Gates } from './gates.js';
import { payloads, type Stage } from './stage.js';

/*
 * An operator whose n-th call goes wrong, while well workers run what he works at. When his process
 * ended, another one does all of it again from the start: each of his calls bears that.
 */

const ITEMS = 6;
/** The worker outlives whatever time passes: what goes wrong here is the operator's. */
const LONG_LEASE_MS = 3_600_000;

/** `lives`: whether the operator's process still does. */
type Work = (admin: Admin, lives: () => boolean) => Promise<void>;

const operate = (stage: Stage, work: Work): Promise<void> =>
  stage.takenOver(
    (how) => stage.admin(how),
    (admin, how) => work(admin, () => how === 'well' || !stage.faults.dead),
  );

/** What an operator hears who comes again: it is being cancelled already. */
const unlessEnded = (call: Promise<unknown>) =>
  call.catch((error: unknown) => {
    if (!(error instanceof EndedError)) throw error;
  });

/** A call that is told when it failed, and is made again then, as by a person. */
async function untilItWorks(lives: () => boolean, call: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await call();
      return;
    } catch (error) {
      // The one call that went wrong.
      if (!lives()) throw error;
    }
  }
}

async function submitted(stage: Stage, limit: number): Promise<string> {
  const id = stage.id('request');
  await (await stage.producer('well')).submit(payloads(ITEMS), { id, limit });
  return id;
}

/** Two end while it is paused; of the others none does. */
async function everyControl(stage: Stage): Promise<string[]> {
  const gates = new Gates(stage);
  const { handler } = gates;
  await (await stage.worker('well', { handler, concurrency: 4, leaseMs: LONG_LEASE_MS })).start();
  const id = await submitted(stage, 2);
  const field = async (name: string) =>
    (await stateOf(stage.scene(id).connection.client, `request:{${id}}`))[name];
  const running = () => gates.running.some((index) => index > 1);
  const ended = async () => /cancelling|complete/.test((await field('status')) ?? '') || running();

  const work: Work = async (admin) => {
    await unlessEnded(admin.pause(id));
    gates.open(0, 1);
    await until(async () => (await field('succeeded')) === '2');
    await unlessEnded(admin.resume(id));
    await until(ended);
    await unlessEnded(admin.update(id, { limit: 3, priority: 10 }));
    await until(ended);
    // A message may get lost without a word, and its worker renews in a long time only: asked again.
    await until(async () => gates.running.length === 0 || void (await admin.cancel(id)), {
      everyMs: 40,
    });
  };
  try {
    await until(() => gates.running.length === 2);
    await stage.heal(operate(stage, work));
  } finally {
    gates.openAll();
  }
  const wrong = await stage.judge(id, { counts: { succeeded: 2, cancelled: 4 } });
  const { fields } = await peek(stage.scene(id));
  for (const [name, value] of Object.entries({ limit: '3', priority: '10', endReason: 'cancel' })) {
    if (fields[name] !== value) wrong.push(`${name} is ${fields[name]}`);
  }
  return wrong;
}

/** Its workers learn it from the message, or when they renew. */
async function dropped(stage: Stage): Promise<string[]> {
  const gates = new Gates(stage);
  await (await stage.worker('well', { handler: gates.handler, leaseMs: 1_500 })).start();
  const id = await submitted(stage, 2);
  const status = async () => (await peek(stage.scene(id))).status;
  const work: Work = async (admin) => {
    if ((await status()) !== 'dropped') await admin.drop(id);
    await until(() => gates.running.length === 0);
  };
  try {
    await until(() => gates.running.length === 2);
    await stage.heal(operate(stage, work));
  } finally {
    gates.openAll();
  }
  const wrong: string[] = [];
  if ((await status()) !== 'dropped') wrong.push(`is ${await status()}`);
  const left = await keysOf(stage.scene(id).connection.client, id);
  if (left.join() !== `request:{${id}}`) wrong.push(`left are ${left}`);
  if (gates.aborted < 2) wrong.push(`${gates.aborted} were aborted`);
  return wrong;
}

/** What runs ends while it is paused, one after the other, until the worker has left. */
async function pausedQueue(stage: Stage): Promise<string[]> {
  const gates = new Gates(stage);
  const { handler } = gates;
  await (await stage.worker('well', { handler, leaseMs: LONG_LEASE_MS })).start();
  const id = await submitted(stage, 2);
  const picture = () => peek(stage.scene(id));
  let stood = false;
  const work: Work = async (admin, lives) => {
    await untilItWorks(lives, () => admin.workers());
    await untilItWorks(lives, () => admin.pauseQueue());
    await untilItWorks(lives, () => admin.pauseQueue({ forMs: 9_000_000 }));
    for (;;) {
      const { granted, counts } = await picture();
      stood ||= granted === 0 && counts.ready > 0;
      if (granted === 0) break;
      const [one] = gates.running;
      if (one === undefined) continue;
      gates.open(one);
      await until(() => !gates.running.includes(one));
    }
    await untilItWorks(lives, () => admin.resumeQueue());
    gates.openAll();
    await untilItWorks(lives, () => admin.resumeQueue());
  };
  try {
    await until(() => gates.running.length === 2);
    await stage.heal(operate(stage, work));
  } finally {
    gates.openAll();
  }
  const { client } = stage.scene(id).connection;
  const wrong = stood ? [] : ['it did not pause'];
  if ((await client.exists(`{${stage.queue}}:paused`)) > 0) wrong.push('it is still paused');
  return [...wrong, ...(await stage.judge(id, { counts: { succeeded: 5, failed: 1 } }))];
}

export const operators = {
  'operator: pause, resume, update, cancel': everyControl,
  'operator: drop of what runs': dropped,
  'operator: pause and resume of the queue': pausedQueue,
};
