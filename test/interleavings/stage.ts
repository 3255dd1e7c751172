import { type Connection, QueueCommands } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import type { Redis } from 'ioredis';
import { Log } from '../support/flow.js';
import type { Scene } from '../support/given.js';
import { type Picture, peek, peekQueue, type QueuePicture } from '../support/peek.js';
import type { Actor } from './actor.js';
import { closeClient, type Wire } from './gated-client.js';
import { broken, CLOCK_STEPS, type Fault, type Trip, titleOf } from './trip.js';
import { stepClock, virtualNow } from './virtual-time.js';

/*
 * Where one history plays: the gate at which steps wait, what is done when one is carried out, and
 * the pictures of Redis after it.
 */

export const QUEUE = 'q';
/** Longer than a lease, and than anything else that the roles wait for an answer. */
const STANDS_STILL_MS = 40_000;
const MUCH_LATER_MS = 45_000;
/** Shorter than producers go on trying. */
const FULL_MS = 20_000;
/** How long a blocking pop blocks. */
const BLOCK_MS = 5_000;

/** A step that was carried out, the first word of its reply, what was refused of it, and the pictures before. */
export interface Done {
  readonly trip: Trip;
  readonly reply: unknown;
  readonly refused: readonly string[];
  readonly before: ReadonlyMap<string, Picture>;
}

const isRefusal = (error: unknown) => /OOM command not allowed/.test(String(error));

/** Of a pipeline, or of a single call that was answered. */
const refusedOf = (name: string, answer: unknown): string[] =>
  name.includes('+') && Array.isArray(answer)
    ? name.split('+').filter((_, i) => isRefusal((answer[i] as [unknown])[0]))
    : [];

export class Stage implements Wire {
  readonly #shared: Redis;
  readonly #mute: Redis;
  #isMute = false;
  readonly ear: Redis;
  readonly scriptNames: ReadonlyMap<string, string>;
  readonly channels = new Map<string, Map<Redis, Actor>>();
  readonly clients = new Map<number, Redis>();
  readonly log = new Log();
  /** What happened, step by step, with the replies. */
  readonly lines: string[] = [];
  readonly pictures = new Map<string, Picture>();
  queue: QueuePicture | undefined;
  readonly priorities: readonly number[];
  /** Counts whatever comes to the gate or happens to an actor. */
  stirred = 0;
  /** Whether time passed though there was something to do. */
  timePassed = false;
  /** Told when a process has died. */
  readonly onDeath: ((actor: Actor, fault: Fault) => void)[] = [];
  /** The step that was carried out last. */
  done: Done | undefined;
  /** When Redis was last back after it had stood still, and how often it did. */
  backAt = 0;
  outages = 0;
  /** By how much the server's clock was set, each time. */
  readonly clockSteps: number[] = [];
  /** Until when Redis is full. */
  fullUntil = 0;
  #isFull = false;
  /** When the last process went on that stood still. */
  thawedAt = 0;
  /** Whether a notice never came. */
  silenced = false;
  /** Whether a script was not allowed to publish. */
  wasMute = false;
  #waiting: { trip: Trip; client: Redis | undefined }[] = [];
  readonly #numbers = new Map<Actor, number>();
  readonly #frozen = new Set<Actor>();
  /** When keys end, by the server's clock and in virtual time. */
  readonly #ends = new Map<string, { readonly real: number; readonly at: number }>();
  readonly #connection: Connection;

  constructor(
    connection: Connection,
    { ear, mute }: { ear: Redis; mute: Redis },
    scriptNames: ReadonlyMap<string, string>,
    priorities: readonly number[],
  ) {
    this.#connection = connection;
    this.#shared = connection.client as Redis;
    this.#mute = mute;
    this.ear = ear;
    this.scriptNames = scriptNames;
    this.priorities = priorities;
    ear.removeAllListeners('smessage');
    ear.on('smessage', (channel: string, message: string) => this.#hear(channel, message));
  }

  /** Over what steps go. */
  get shared(): Redis {
    return this.#isMute ? this.#mute : this.#shared;
  }

  /** Both sides of a request, beyond the gate. */
  scene(id: string, generation = 0): Scene {
    const connection = this.#connection;
    const queue = new QueueCommands(connection, QUEUE);
    return { id, generation, connection, queue, request: new RequestCommands(connection, id) };
  }

  travel(
    step: Omit<Trip, 'key' | 'arrivedAt' | 'patient' | 'resolve' | 'reject'> & {
      patient?: boolean;
    },
    client?: Redis,
  ): Promise<unknown> {
    this.stirred += 1;
    // A dead process hears nothing, not even that its connection broke.
    if (step.actor.dead) return new Promise(() => {});
    if (client?.status === 'end') return Promise.reject(broken());
    return new Promise((resolve, reject) => {
      const key = this.#number(step.actor);
      const trip = { key, patient: false, ...step, arrivedAt: virtualNow(), resolve, reject };
      this.#waiting.push({ trip, client });
    });
  }

  #number(actor: Actor): string {
    const n = (this.#numbers.get(actor) ?? 0) + 1;
    this.#numbers.set(actor, n);
    return `${actor.name}#${n}`;
  }

  withdraw(client: Redis, which: 'all' | 'pops'): number {
    const mine = this.#waiting.filter(
      (one) => one.client === client && (which === 'all' || one.trip.kind === 'pop'),
    );
    this.#waiting = this.#waiting.filter((one) => !mine.includes(one));
    this.stirred += mine.length;
    for (const { trip } of mine) {
      if (which === 'pops') trip.resolve(null);
      else trip.reject(broken());
    }
    return mine.length;
  }

  /** The steps that can be carried out now, in the usual order. */
  possible(): Trip[] {
    const ready = this.#waiting.map(({ trip }) => trip).filter((trip) => this.#isReady(trip));
    const first = ready[0];
    // Who touches no key is in nobody's way: there is nothing to choose.
    if (first && first.tags.length === 0 && first.kind !== 'handler') return [first];
    return [...ready.filter(({ patient }) => !patient), ...ready.filter(({ patient }) => patient)];
  }

  /** Steps that wait for a token. */
  get pops(): Trip[] {
    return this.#waiting.map(({ trip }) => trip).filter(({ kind }) => kind === 'pop');
  }

  #isReady({ actor, kind, patient, arrivedAt, notBefore = 0 }: Trip): boolean {
    if ((actor.frozen && !patient) || virtualNow() < notBefore) return false;
    if (kind !== 'handler' && virtualNow() < this.backAt) return false;
    if (kind !== 'pop') return true;
    return this.tokens > 0 || virtualNow() >= arrivedAt + BLOCK_MS;
  }

  get tokens(): number {
    return Object.values(this.queue?.lists ?? {}).reduce((sum, list) => sum + list.length, 0);
  }

  /** Carries a step out. */
  async carryOut(trip: Trip, fault: Fault | undefined): Promise<void> {
    const at = this.#waiting.findIndex((one) => one.trip === trip);
    const client = this.#waiting.splice(at, 1)[0]?.client;
    const line = fault ? `${titleOf(trip)}: ${fault}` : titleOf(trip);
    const { actor } = trip;
    let reply = '';
    let word: unknown;
    let refused: readonly string[] = [];
    const before = new Map(this.pictures);
    if (virtualNow() >= this.fullUntil) await this.makeRoom();
    await this.#unsubscribe();
    // What a script published has come when a later question is answered on the same connection. It comes before
    // the reply does: two sockets would bring them in an order that no schedule repeats.
    const published = async () => {
      if (this.channels.size > 0 && !trip.readsOnly) await this.ear.ping();
    };
    const done = async (): Promise<() => void> => {
      try {
        const answer = await trip.send();
        await published();
        word = Array.isArray(answer) ? answer[0] : answer;
        refused = refusedOf(trip.name, answer);
        // What a server says of itself, or how long ago by its own clock, is never the same.
        // By whom a request was created is drawn by chance.
        const varies = /^(info|pending)$/.test(trip.name) || trip.argv?.includes('createdBy');
        const isCreate = trip.name === 'create' && /^(created|exists)$/.test(String(word));
        const shown = isCreate ? (answer as unknown[]).slice(0, -1) : answer;
        reply = varies ? '' : (JSON.stringify(shown) ?? '');
        return () => trip.resolve(answer);
      } catch (error) {
        await published();
        reply = String(error);
        refused = isRefusal(error) ? [trip.name] : [];
        return () => trip.reject(error as Error);
      }
    };
    switch (fault) {
      case undefined:
        (await done())();
        break;
      case 'not sent':
        if (trip.kind === 'notice') this.silenced = true;
        else trip.reject(broken());
        break;
      case 'reply lost':
        if (trip.kind === 'notice') actor.run(() => client && closeClient(this, client));
        else {
          await done();
          trip.reject(broken());
        }
        break;
      case 'sent again':
        await done();
        (await done())();
        break;
      case 'late':
      case 'much later':
        trip.reject(broken());
        this.#comesLate(trip, fault === 'late' ? 0 : MUCH_LATER_MS);
        break;
      case 'ends, much later':
        this.#die(actor, fault);
        this.#comesLate(trip, MUCH_LATER_MS);
        break;
      case 'ends before':
        this.#die(actor, fault);
        break;
      case 'ends after':
        await done();
        // What it held when it died is what this step left to it.
        await this.refresh(trip.tags);
        this.#die(actor, fault);
        break;
      case 'Redis stands still':
        (await done())();
        this.backAt = virtualNow() + STANDS_STILL_MS;
        this.outages += 1;
        setTimeout(() => {
          this.stirred += 1;
        }, STANDS_STILL_MS);
        break;
      case 'Redis is full':
        await this.#shared.config('SET', 'maxmemory', 1);
        this.#isFull = true;
        this.fullUntil = virtualNow() + FULL_MS;
        setTimeout(() => {
          this.stirred += 1;
        }, FULL_MS);
        (await done())();
        break;
      case 'no answer':
        this.#waiting.push({ trip: { ...trip, notBefore: Number.POSITIVE_INFINITY }, client });
        break;
      case 'not published':
        this.#isMute = true;
        this.wasMute = true;
        (await done())();
        this.#isMute = false;
        break;
      case 'stands still': {
        const answered = await done();
        this.#freeze(actor);
        actor.wake(answered);
        break;
      }
      default:
        stepClock(CLOCK_STEPS[fault]);
        this.clockSteps.push(CLOCK_STEPS[fault]);
        (await done())();
    }
    this.lines.push(reply ? `${line} → ${reply}` : line);
    await this.refresh(trip.tags);
    this.done = { trip, reply: word, refused, before };
  }

  /** The server has noticed which connections ended: who publishes is answered how many listen. */
  async #unsubscribe(): Promise<void> {
    for (const [channel, members] of this.channels) {
      if (members.size > 0) continue;
      this.channels.delete(channel);
      await this.ear.sunsubscribe(channel);
    }
  }

  /** Redis has room again, if it was full. */
  async makeRoom(): Promise<void> {
    if (!this.#isFull) return;
    this.#isFull = false;
    await this.#shared.config('SET', 'maxmemory', 0);
  }

  /** It is under way, and nobody waits for it any more. */
  #comesLate(trip: Trip, afterMs: number): void {
    const notBefore = virtualNow() + afterMs;
    const key = this.#number(trip.actor);
    const nobody = { resolve: () => {}, reject: () => {} };
    this.#waiting.push({
      trip: { ...trip, ...nobody, key, patient: true, notBefore },
      client: undefined,
    });
    setTimeout(() => {
      this.stirred += 1;
    }, afterMs);
  }

  /** It ends by itself. */
  kill(actor: Actor): void {
    this.#die(actor, 'ends before');
  }

  #die(actor: Actor, fault: Fault): void {
    actor.dead = true;
    this.stirred += 1;
    // What arrives late has left the process before it died.
    this.#waiting = this.#waiting.filter(({ trip }) => trip.actor !== actor || trip.patient);
    for (const members of this.channels.values()) {
      for (const [client, owner] of members) if (owner === actor) members.delete(client);
    }
    for (const tell of this.onDeath) tell(actor, fault);
  }

  #freeze(actor: Actor): void {
    actor.frozenUntil = virtualNow() + STANDS_STILL_MS;
    this.thawedAt = actor.frozenUntil;
    this.#frozen.add(actor);
    setTimeout(() => {
      this.stirred += 1;
      this.#frozen.delete(actor);
      actor.thaw();
    }, STANDS_STILL_MS);
  }

  /** Whether somebody waits at the gate who is not in a hurry. */
  get patience(): boolean {
    return this.#waiting.some(({ trip }) => trip.patient);
  }

  get anybodyFrozen(): boolean {
    return this.#frozen.size > 0;
  }

  #hear(channel: string, message: string): void {
    for (const [client, actor] of this.channels.get(channel) ?? []) {
      const send = async () => actor.run(() => void client.emit('smessage', channel, message));
      const step = { actor, name: `hears '${message}'`, readsOnly: false } as const;
      const tags = [/\{(.+)\}/.exec(channel)?.[1] ?? ''];
      void this.travel({ ...step, kind: 'notice', tags, send }, client).catch(() => {});
    }
  }

  /** Removes the keys of requests whose time to live, as it was last set, is over in virtual time. */
  async expire(ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      for (const key of await this.#shared.keys(`*{${id}}*`)) {
        const at = Number(await this.#shared.call('PEXPIRETIME', key));
        const known = this.#ends.get(key);
        if (at < 0) this.#ends.delete(key);
        else if (known?.real !== at)
          this.#ends.set(key, { real: at, at: virtualNow() + (await this.#shared.pttl(key)) });
        else if (known.at <= virtualNow()) {
          await this.#shared.unlink(key);
          await this.refresh([id]);
        }
      }
    }
  }

  /** Reads back what a step may have changed. */
  async refresh(tags: readonly string[]): Promise<void> {
    for (const tag of tags) {
      if (tag === QUEUE) this.queue = await peekQueue(this.scene(''), this.priorities);
      else if (tag !== '') this.pictures.set(tag, await peek(this.scene(tag)));
    }
  }
}
