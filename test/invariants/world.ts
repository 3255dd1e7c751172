import { ControlCommands } from '@piecework/protocol';
import type { Actor, Surroundings } from '../cast/calls/actor.js';
import { Admin } from '../cast/calls/admin.js';
import { Operator, PRIORITIES } from '../cast/calls/operator.js';
import { Redriver } from '../cast/calls/redriver.js';
import { Submitter } from '../cast/calls/submitter.js';
import { Ticker } from '../cast/calls/ticker.js';
import { Worker } from '../cast/calls/worker.js';
import { isAbsent, isCrash, leftForEver, wrongAtEnd } from '../cast/judge.js';
import { Runs } from '../cast/runs.js';
import { clockOffset, moveClock } from '../support/clock.js';
import { failure, freshName, given, Hand, type Options, type Scene } from '../support/given.js';
import { keysOf } from '../support/leaks.js';
import { type Picture, peek, peekQueue, queueFaultsOf } from '../support/peek.js';
import { Late } from './late.js';
import { wrongBooks, wrongChange, wrongRuns } from './rules.js';

/*
 * A small world that lives by the protocol: the actors of cast/calls, one call at a time in a random order. Any call
 * may be sent twice, arrive again much later, or be the last one of its sender; time may jump. After every call the
 * books are read back.
 */

export interface Setting {
  readonly workers: number;
  readonly slots: number;
  readonly limit: number;
  readonly attempts: number;
  readonly maxCrashes: number;
  readonly onProducerLost: 'seal' | 'cancel';
  /** Items that a submitter adds. */
  readonly items: number;
  /** Whether the first request is there from the start. */
  readonly submitted: boolean;
  /** Whether all of it has failed then, so that it may be redriven. */
  readonly failed: boolean;
  /** Whether an admin cancels and drops. */
  readonly meddling: boolean;
  /** Whether an operator pauses, resumes, holds and changes requests, and somebody redrives them. */
  readonly operated: boolean;
  readonly deadlineMs: number | null;
  /** More failures than so many end it. */
  readonly tolerated: number | null;
  /** Whether a second request shares the queue; its priority is lower by so much. */
  readonly neighbour: number | null;
  /** Whether the server's clock is set to another time now and then, by an hour at most. */
  readonly clockSteps: boolean;
}

/** One step: who acts, what it does, and what goes wrong. All are taken modulo what there is. */
export interface Step {
  readonly who: number;
  readonly what: number;
  readonly fault: number;
}

/** Calls after which a request must be submitted, or all of it failed, when nothing goes wrong. */
const MOST_CALLS = 60;
/** By how much the server's clock is set. */
const CLOCK_STEPS_MS = [
  ...[-1_000, -9_000, -40_000, -600_000, -3_600_000],
  ...[1_000, 9_000, 40_000, 600_000, 3_600_000],
];
/** By how much time passes. */
const PAUSES_MS = [100, 900, 3_000, 5_500, 8_500, 16_000, 31_000];

/** The fault of a call, by the number that a step drew below 100. */
function faultOf(drawn: number) {
  if (drawn === 99) return 'stands still';
  if (drawn >= 97) return 'ends, much later';
  if (drawn >= 95) return 'ends after';
  if (drawn >= 93) return 'ends before';
  if (drawn >= 89) return 'again, much later';
  return drawn >= 85 ? 'sent again' : undefined;
}

export class World implements Surroundings {
  readonly setting: Setting;
  readonly scenes: Scene[] = [];
  readonly pictures = new Map<string, Picture>();
  readonly runs = new Runs({ byGeneration: true });
  healing = false;
  readonly log: string[] = [];
  /** How many requests ended in which outcome. */
  readonly ends: Record<string, number> = {};
  /** How many sub-requests failed by a crash. */
  crashed = 0;
  /** How many requests ended in a generation that a redrive opened. */
  redriven = 0;
  healedAfterMs = 0;
  readonly #workers: Worker[] = [];
  readonly #tickers: Ticker[];
  readonly #submitters: Submitter[] = [];
  #admin: Admin;
  #operator: Operator;
  readonly #redrivers: Redriver[];
  readonly #late = new Late();
  #steps = 0;
  #clockSetByMs = 0;

  private constructor(setting: Setting) {
    this.setting = setting;
    this.#tickers = [new Ticker(this), new Ticker(this)];
    this.#admin = new Admin(this);
    this.#operator = new Operator(this);
    this.#redrivers = [new Redriver(this), new Redriver(this)];
  }

  static async create(setting: Setting): Promise<World> {
    const world = new World(setting);
    const queue = freshName('queue');
    for (let i = 0; i < (setting.neighbour === null ? 1 : 2); i += 1) {
      const scene = await given.nothing({ queue });
      world.scenes.push(scene);
      const submission = { options: world.#optionsOf(i), items: setting.items };
      // Both submit one id: the second starts its next generation, or is refused.
      for (let n = 0; n < 2; n += 1)
        world.#submitters.push(new Submitter(world, scene, submission));
    }
    for (let i = 0; i < setting.workers; i += 1) world.#workers.push(world.#worker());
    if (setting.submitted) {
      const [submitter] = world.#submitters as [Submitter];
      for (let calls = 0; !submitter.done; calls += 1) {
        if (calls === MOST_CALLS) world.#fail('not submitted', await world.#peekQueue());
        await world.#act(submitter, 0);
      }
      if (setting.failed) await world.#failAll(world.scenes[0] as Scene);
    }
    return world;
  }

  #worker(): Worker {
    return new Worker(this, this.setting.slots);
  }

  #optionsOf(i: number): Options {
    const { limit, attempts, maxCrashes, onProducerLost, neighbour } = this.setting;
    const { deadlineMs, tolerated } = this.setting;
    const priority = i === 0 ? 50 : 50 + (neighbour ?? 0);
    const ends =
      tolerated === null ? {} : { toleratedFailures: tolerated, onExceeded: 'cancel' as const };
    const times = deadlineMs === null ? {} : { deadlineMs };
    return { limit, attempts, maxCrashes, onProducerLost, priority, ...ends, ...times };
  }

  /** A worker that comes and goes fails every sub-request, before anybody else acts. */
  async #failAll(scene: Scene): Promise<void> {
    const { generation } = this.pictures.get(scene.id) as Picture;
    const hand = new Hand({ ...scene, generation }, freshName('w'));
    while (this.pictures.get(scene.id)?.status !== 'complete') {
      if (hand.op > MOST_CALLS) this.#fail('not all failed', await this.#peekQueue());
      const entries = await hand.hold(9, []);
      for (const { entry } of entries) {
        const run = this.runs.ofEntry(scene.id, entry);
        run.began += 1;
        run.failed += this.setting.attempts;
      }
      await hand.trySettle(
        entries.map((entry) => failure(entry, -1)),
        { keep: 0 },
      );
      await this.check('all fails');
    }
  }

  async step({ who, what, fault }: Step): Promise<void> {
    this.#steps += 1;
    await this.#arrive(this.#steps);
    if (who < 6) return this.#stepWorker(who % this.#workers.length, what, fault);
    if (who < 8) {
      const i = who % this.#tickers.length;
      const ticker = this.#tickers[i] as Ticker;
      if (ticker.alive) return this.#act(ticker, what, fault);
      this.#tickers[i] = new Ticker(this);
    } else if (who < 11) {
      const submitter = this.#submitters[what % this.#submitters.length] as Submitter;
      if (submitter.alive) return this.#act(submitter, what, fault);
    } else if (who === 11) {
      moveClock(PAUSES_MS[what % PAUSES_MS.length] as number);
      this.log.push(`clock ${clockOffset()}`);
    } else if (who === 12) {
      if (!this.setting.meddling) return;
      if (this.#admin.alive) return this.#act(this.#admin, what, fault);
      this.#admin = new Admin(this);
    } else if (who === 19) {
      if (this.setting.clockSteps) this.#setClock(what);
    } else if (this.setting.operated) return this.#stepOperator(who, what, fault);
  }

  async #stepWorker(i: number, what: number, fault: number): Promise<void> {
    const worker = this.#workers[i] as Worker;
    if (!worker.alive) {
      if (what % 5 === 0) this.#workers[i] = this.#worker();
      return;
    }
    // A process that stands still does so between the check of its clock and the call.
    if (faultOf(fault) === 'stands still' || what % 29 === 0) worker.frozen = 3;
    if (worker.frozen > 0) worker.frozen -= 1;
    else worker.fence();
    await this.#act(worker, what, fault);
  }

  async #stepOperator(who: number, what: number, fault: number): Promise<void> {
    if (who === 13) {
      if (this.#operator.alive) return this.#act(this.#operator, what, fault);
      this.#operator = new Operator(this);
      return;
    }
    // Mostly the first redriver, so that it comes to an end among what workers do.
    const i = who === 14 ? 1 : 0;
    const redriver = this.#redrivers[i] as Redriver;
    if (redriver.alive) return this.#act(redriver, what, fault);
    this.#redrivers[i] = new Redriver(this);
  }

  get time(): number {
    return Date.now() + clockOffset() - this.#clockSetByMs;
  }

  #setClock(what: number): void {
    const ms = CLOCK_STEPS_MS[what % CLOCK_STEPS_MS.length] as number;
    this.#clockSetByMs += ms;
    moveClock(ms);
    const sessions = this.#workers.flatMap((worker) => [...worker.sessions.values()]);
    if (ms > 0) for (const session of sessions) session.doubtful = true;
    this.log.push(`the server's clock is set by ${ms}`);
  }

  /** An actor makes its next call, if it has one to make. */
  async #act(actor: Actor, what: number, drawn = 0): Promise<void> {
    const call = actor.next(what);
    if (!call) return;
    const fault = faultOf(drawn);
    const label = `${actor.constructor.name} ${call.name}${fault ? `: ${fault}` : ''}`;
    this.log.push(label);
    if (fault === 'ends before') return actor.die();
    const arrivesAt = this.#steps + 1 + (what % 40);
    if (fault === 'ends, much later') {
      this.#late.add(call, arrivesAt);
      return actor.die();
    }
    let reply = await call.send();
    if (fault === 'sent again') reply = await call.send();
    if (fault === 'again, much later') this.#late.add(call, arrivesAt);
    if (fault === 'ends after') actor.die();
    else call.onReply(reply as never);
    await this.check(label);
  }

  /** Lets the late calls arrive that are due at a step; by default all. */
  async #arrive(step = Number.POSITIVE_INFINITY): Promise<void> {
    for (const call of this.#late.due(step)) {
      this.log.push(`late: ${call.name}`);
      await call.send();
      await this.check(`late ${call.name}`);
    }
  }

  /** Lets every late call arrive. */
  async allArrive(): Promise<void> {
    await this.#arrive();
  }

  /** Reads everything back. @throws Error saying what must not be */
  async check(after: string): Promise<void> {
    const wrong: string[] = [];
    for (const scene of this.scenes) {
      const picture = await peek(scene);
      wrong.push(...wrongBooks(picture), ...wrongChange(this.pictures.get(scene.id), picture));
      this.pictures.set(scene.id, picture);
      wrong.push(...wrongRuns(scene, picture, this.#workers));
    }
    const queue = await this.#peekQueue();
    wrong.push(...queueFaultsOf(queue));
    if (wrong.length > 0) this.#fail(`after ${after}: ${wrong.join('; ')}`, queue);
  }

  #peekQueue() {
    const used = this.scenes.map((_, i) => this.#optionsOf(i).priority as number);
    return peekQueue(this.scenes[0] as Scene, [...new Set([...used, ...PRIORITIES])]);
  }

  #fail(what: string, queue: unknown): never {
    const pictures = Object.fromEntries(this.pictures);
    const state = JSON.stringify({ pictures, queue }, undefined, 1);
    throw new Error(`${what}\n${this.log.slice(-60).join('\n')}\n${state}`);
  }

  /** No more faults: whoever is alive does its work, time passes, and everything has to end. */
  async heal(): Promise<void> {
    this.healing = true;
    for (const actor of [...this.#submitters, this.#admin, this.#operator, ...this.#redrivers])
      actor.die();
    await this.#resumeAll();
    if (!this.#workers.some(({ alive }) => alive)) this.#workers.push(this.#worker());
    const from = clockOffset();
    for (let round = 0; round < 80; round += 1) {
      for (const ticker of this.#tickers) {
        do await this.#act(ticker, 0);
        while (ticker.alive && !ticker.idle);
      }
      for (const worker of this.#workers) {
        for (let i = 0; worker.alive && i < 60; i += 1) {
          worker.fence();
          await this.#act(worker, i);
          if (worker.idle) break;
        }
      }
      const { open } = await this.#peekQueue();
      if (Object.keys(open).length === 0) {
        this.healedAfterMs = clockOffset() - from;
        return;
      }
      moveClock(2_500);
    }
    await this.check('heal');
    this.#fail('not healed', await this.#peekQueue());
  }

  /** Somebody notices which requests are paused. */
  async #resumeAll(): Promise<void> {
    for (const { connection, id, queue } of this.scenes) {
      const control = new ControlCommands(connection, id);
      const life = await control.current();
      if (!life) continue;
      const { generation } = life;
      const resumed = await control.resume(generation);
      if (resumed.verdict !== 'ok') continue;
      if (resumed.mint > 0) await queue.push({ id, generation, ...resumed });
      await queue.scheduleTend(id, generation, 0);
    }
  }

  /** What must be in the end. */
  async judge(): Promise<void> {
    const wrong: string[] = [];
    for (const scene of this.scenes) {
      const picture = await peek(scene);
      this.pictures.set(scene.id, picture);
      if (isAbsent(picture)) continue;
      wrong.push(...wrongAtEnd(scene.id, picture, this.runs));
      const { counts, outcome, results, fields } = picture;
      if (counts.total > this.setting.items) wrong.push(`${counts.total} sub-requests`);
      if (fields['redriving'] !== undefined) this.redriven += 1;
      this.ends[outcome] = (this.ends[outcome] ?? 0) + 1;
      this.crashed += results.filter(({ index }) => isCrash(picture, index)).length;
    }
    const { connection } = this.scenes[0] as Scene;
    wrong.push(...(await leftForEver(connection.client, await this.#keys())));
    if (wrong.length > 0) this.#fail(wrong.join('; '), await this.#peekQueue());
  }

  #keys(): Promise<string[]> {
    const { queue, connection } = this.scenes[0] as Scene;
    return keysOf(connection.client, ...this.scenes.map(({ id }) => id), queue.keys.queue);
  }

  async remove(): Promise<void> {
    const { connection } = this.scenes[0] as Scene;
    for (const key of await this.#keys()) await connection.client.unlink(key);
  }
}
