import { Agenda, type AgendaOptions, type Connection, QueueCommands } from '@piecework/protocol';
import { KnownTimes } from '@piecework/protocol/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { connected, freshName, given, type Options } from '../support/given.js';
import { until } from '../support/until.js';

useTestClock();

/** From an intent to its first tend, in ms. */
const LOOK_MS = 20_000;

const started: Agenda[] = [];
afterEach(() => Promise.all(started.splice(0).map((agenda) => agenda.close())));

/** An agenda of a new queue in which so many intents are, and how often it has ticked. */
async function agendaOf(intents: number, options: AgendaOptions = {}, onClaim = () => {}) {
  const connection: Connection = await connected();
  const queue = new QueueCommands(connection, freshName('queue'));
  const name = freshName('request');
  for (let i = 0; i < intents; i += 1) await queue.intent(`${name}-${i}`);
  return { ...agendaOn(connection, queue, options, onClaim), queue, name };
}

/** An agenda of this queue, and how often it has ticked. */
function agendaOn(
  connection: Connection,
  queue: QueueCommands,
  options: AgendaOptions = {},
  onClaim = () => {},
) {
  const seen = { ticks: 0, claims: 0 };
  const onTick: AgendaOptions['onTick'] = ({ claims }) => {
    seen.ticks += 1;
    seen.claims += claims.length;
    if (claims.length > 0) onClaim();
  };
  const agenda = new Agenda(connection, queue, { ...options, onTick });
  started.push(agenda);
  return { agenda, seen };
}

/** The ticks of an agenda that has ticked just now, and ticks again in 5 s if it does not know that something is due sooner. */
async function restingAgenda() {
  const { agenda, seen } = await agendaOf(0);
  agenda.start();
  await until(() => seen.ticks === 1);
  return seen;
}

/** A request that is held for `holdMs`, and has to be tended now. */
async function heldRequest(holdMs: number, options: Options = {}) {
  const scene = await given.sealed({ items: 1, ...options });
  await scene.request.hold(scene.generation, holdMs);
  await scene.queue.scheduleTend(scene.id, scene.generation, 0);
  return scene;
}

describe('the times that a process knows', () => {
  const orders: Record<string, readonly number[]> = {
    'in their order': [100, 200, 300, 7_000, 60_000],
    'the last one first': [60_000, 7_000, 300, 200, 100],
    'in any order': [300, 60_000, 100, 7_000, 200],
    'several times': [200, 100, 200, 300, 100, 60_000, 7_000, 60_000],
  };
  for (const [order, times] of Object.entries(orders)) {
    it(`are all kept until a tick has begun after them, whether learned ${order}`, () => {
      const known = new KnownTimes();
      for (const time of times) known.add(time);
      for (const due of [100, 200, 300, 7_000, 60_000]) {
        expect(known.remove(due - 1)).toBe(false);
        expect(known.first).toBeGreaterThan(due);
        expect(known.first).toBeLessThanOrEqual(due + 10);
        expect(known.remove(known.first)).toBe(true);
      }
      expect(known.first).toBe(Number.POSITIVE_INFINITY);
    });
  }

  it('are one if they are close together, and are never found too early', () => {
    const known = new KnownTimes();
    for (let ms = 0; ms < 5; ms += 0.5) known.add(1_000.25 + ms);
    expect(known.remove(1_004.75)).toBe(false);
    expect(known.first).toBeGreaterThan(1_004.75);
    expect(known.remove(known.first)).toBe(true);
    expect(known.first).toBe(Number.POSITIVE_INFINITY);
  });

  it('are forgotten only where they are far behind many others', () => {
    const known = new KnownTimes();
    for (let ms = 0; ms < 100_000; ms += 1) known.add(ms);
    let [count, latest] = [0, 0];
    for (; known.first < Number.POSITIVE_INFINITY; count += 1) {
      latest = known.first;
      known.remove(latest);
    }
    expect(count).toBe(1_000);
    expect(latest).toBeGreaterThanOrEqual(5_000);
  });
});

describe('a tick', () => {
  it('that claimed as much as it can is followed by another at once', async () => {
    const { agenda } = await agendaOf(120);
    moveClock(LOOK_MS + 1_000);
    expect(await agenda.tick()).toBe(0);
    expect(await agenda.tick()).toBe(0);
    expect(await agenda.tick()).toBeGreaterThan(700);
  });

  it('is followed by another when the next is due, if that is to be prompt, and else at its pace', async () => {
    let [prompt, other, ms] = [await agendaOf(1, { prompt: true }), await agendaOf(1), 0];
    for (let tries = 0; tries < 5; tries += 1) {
      // As far from now as possible without an earlier tick for its pace.
      moveClock(LOOK_MS - 700);
      ms = await prompt.agenda.tick();
      if (prompt.seen.claims === 0) break;
      // Held up for so long that it was due by then.
      [prompt, other] = [await agendaOf(1, { prompt: true }), await agendaOf(1)];
    }
    expect(ms).toBeGreaterThanOrEqual(37);
    expect(ms).toBeLessThanOrEqual(700);
    expect(await other.agenda.tick()).toBeGreaterThanOrEqual(750);
  });

  it('rests for longer where many agendas are kept, but not beyond what is due', async () => {
    const restMs = () => 600_000;
    const nothing = await agendaOf(0, { prompt: true, restMs });
    expect(await nothing.agenda.tick()).toBeGreaterThan(500_000);
    const due = await agendaOf(1, { prompt: true, restMs });
    const ms = await due.agenda.tick();
    expect(ms).toBeGreaterThan(5_000);
    expect(ms).toBeLessThanOrEqual(LOOK_MS);
    const usual = await agendaOf(0, { prompt: true });
    expect(await usual.agenda.tick()).toBeLessThanOrEqual(5_000);
  });

  it('keeps the pace of the fleet, however prompt', async () => {
    const { agenda, queue } = await agendaOf(1, { prompt: true });
    moveClock(LOOK_MS - 300);
    for (let i = 0; i < 30; i += 1) await queue.tick(`worker ${i}`, '{}');
    expect(await agenda.tick()).toBeGreaterThanOrEqual(30 * 50 * 0.75);
  });
});

describe('an agenda', () => {
  it('that is behind catches up without a pause', async () => {
    const { agenda, seen } = await agendaOf(170);
    moveClock(LOOK_MS + 1_000);
    const control = await agendaOf(0);
    control.agenda.start();
    await until(() => control.seen.ticks === 1);
    agenda.start();
    await until(() => seen.claims === 170);
    expect(seen.ticks).toBe(4);
    expect(control.seen.ticks).toBe(1);
  });

  it('that is prompt ticks before one that goes by its pace', async () => {
    const control = await agendaOf(1);
    // Looked at in that very moment: a process that was held up ticks for both, one after the other.
    let then: typeof control.seen | undefined;
    const prompt = await agendaOf(1, { prompt: true }, () => {
      then ??= { ...control.seen };
    });
    moveClock(LOOK_MS - 500);
    control.agenda.start();
    prompt.agenda.start();
    await until(() => prompt.seen.claims === 1);
    expect(then).toEqual({ ticks: 1, claims: 0 });
  });

  it('is woken earlier by who knows what comes, also while it ticks', async () => {
    const control = await agendaOf(0);
    const woken = await agendaOf(0);
    control.agenda.start();
    await until(() => control.seen.ticks === 1);
    woken.agenda.start();
    // Its first tick is under way.
    woken.agenda.wakeWithin(100);
    await until(() => woken.seen.ticks === 2);
    woken.agenda.wakeWithin(1_000_000);
    woken.agenda.wakeWithin(100);
    woken.agenda.wakeWithin(0);
    await until(() => woken.seen.ticks === 3);
    expect(control.seen.ticks).toBe(1);
  });

  it('ticks at each time that it was given, whatever it ticks for before', async () => {
    const control = await restingAgenda();
    let began = 0;
    const info = () => {
      began = performance.now();
      return '';
    };
    const { agenda } = await agendaOf(0, { info });
    const last = performance.now() + 900;
    for (const ms of [900, 300, 600]) agenda.wakeWithin(ms);
    agenda.start();
    await until(() => began > last);
    expect(control.ticks).toBe(1);
  });

  it('ticks when a request is due next that it has tended', async () => {
    const control = await restingAgenda();
    const { connection, queue } = await heldRequest(500);
    const { agenda, seen } = agendaOn(connection, queue);
    agenda.start();
    await until(() => seen.claims === 2);
    expect(control.ticks).toBe(1);
  });

  it('ticks when each of several requests is due, in whatever order their holds end', async () => {
    const control = await restingAgenda();
    const { connection, queue } = await heldRequest(900);
    for (const ms of [300, 600]) await heldRequest(ms, { queue: queue.keys.queue });
    const { agenda, seen } = agendaOn(connection, queue);
    agenda.start();
    await until(() => seen.claims === 6);
    expect(control.ticks).toBe(1);
  });

  it('ticks again soon for what was due when a tick failed', async () => {
    const control = await restingAgenda();
    let failed = 0;
    class Failing extends QueueCommands {
      override tick(...args: Parameters<QueueCommands['tick']>) {
        if (seen.ticks !== 1 || failed > 0) return super.tick(...args);
        failed += 1;
        return Promise.reject(new Error('no'));
      }
    }
    const connection = await connected();
    const { agenda, seen } = agendaOn(connection, new Failing(connection, freshName('queue')));
    agenda.start();
    agenda.wakeWithin(100);
    await until(() => seen.ticks === 2);
    expect([failed, control.ticks]).toEqual([1, 1]);
  });
});
