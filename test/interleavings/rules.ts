import type { Picture } from '../support/peek.js';
import type { Actor } from './actor.js';
import type { Cast } from './cast.js';
import { LIVE, readyOf } from './judge.js';
import type { Done, Stage } from './stage.js';
import type { Trip } from './trip.js';
import { serverNow, virtualNow } from './virtual-time.js';

/*
 * What `tend` heals is only late, so a check at the end does not see it. These rules check what each
 * step did, and at what stays as it is for longer than the protocol's own times allow.
 */

/** Until an intent is tended first; no request that has not ended is tended later than that. */
const TEND_MS = 20_000;
const LEASE_MS = 30_000;
/** A permit that nobody uses; calls are sent again after 2 s at most. */
const UNUSED_MS = 6_000;
/** An entry that its living worker does not run: compared every third of a lease. */
const UNKNOWN_MS = 16_000;
/** Work that waits beside a free slot: the audit, twice the grace for a token that was lost, the ticks. */
const IDLE_MS = 40_000;

/** Nobody ticked for so long: Redis was away, and leases last longer. */
const AWAY_MS = 15_000;

/** Which argument of `tend` says when it was claimed. */
const TICKED_AT = 6;

/** A clock that is set back by less is not noticed. */
const BACK_MS = 1_000;

/** Calls that fill Redis (`zadd`: an error for operators); all others have to go on when it is full. */
const FILLING: readonly string[] = ['submit', 'intent', 'create', 'append', 'zadd'];

/** Somebody who waits for what is complete: connecting anew takes so long at most. */
const TOLD_MS = 6_000;

/** A crash that has to be counted when the entry is taken back. */
interface Owed {
  readonly id: string;
  readonly index: number;
  readonly worker: string;
  readonly atLeast: number;
}

export class Rules {
  readonly #stage: Stage;
  readonly #cast: Cast;
  readonly #isTaskWorld: boolean;
  /** When a producer of the request was last answered. */
  readonly #heard = new Map<string, number>();
  /** How often a tend withdrew permits. */
  readonly #withdrawn = new Map<string, number>();
  readonly #since = new Map<string, number>();
  /** When the last tick was, and the one that gave every lease its time again. */
  #tickedAt = 0;
  #resumedAt = 0;
  /** When it did so a second time in a row. */
  #againAt = 0;
  /** Steps of the clock before that tick. */
  #clockStepsSeen = 0;
  #owed: Owed[] = [];
  /** Whether a tend came late that its sender had given up. */
  #lateTend = false;

  constructor(stage: Stage, cast: Cast, { isTaskWorld }: { isTaskWorld: boolean }) {
    this.#stage = stage;
    this.#cast = cast;
    this.#isTaskWorld = isTaskWorld;
    stage.onDeath.push((actor, fault) => this.#bury(actor, fault === 'ends, much later'));
  }

  /** After every step. */
  wrongNow(): string[] {
    const wrong: string[] = [];
    for (const [id, picture] of this.#stage.pictures) {
      if (!LIVE.includes(picture.status)) continue;
      const all = [
        ...this.#wrongState(id, picture),
        ...this.#wrongRuns(id, picture),
        ...this.#wrongCrashes(id, picture),
      ];
      wrong.push(...all.map((what) => `${id}: ${what}`));
    }
    return wrong;
  }

  /** Of the step that was just carried out. `undisturbed`: nothing went wrong so far. */
  wrongStep(undisturbed: boolean): string[] {
    const { done, pictures } = this.#stage;
    this.#stage.done = undefined;
    if (!done) return [];
    if (done.trip.patient) {
      if (done.trip.name === 'tend') this.#lateTend = true;
      this.#owed = this.#owed.filter(({ worker }) => worker !== done.trip.actor.name);
    }
    const wrong = undisturbed ? this.#uncounted() : [];
    const stuck = done.refused.filter((name) => !FILLING.includes(name));
    wrong.push(...stuck.map((name) => `${name} is refused as Redis is full`));
    if (done.trip.name === 'tick' && done.reply === 'ok') this.#tick();
    for (const [id, after] of pictures) {
      const before = done.before.get(id);
      const changed =
        before && done.trip.tags.includes(id) ? this.#change(done, id, before, after) : [];
      wrong.push(...changed.map((what) => `${id}: ${what}`));
      if (done.trip.name === 'write-back' && done.trip.argv?.[0] === id && done.reply === 'ok') {
        const mark = Number.parseInt(this.#stage.queue?.marks[id] ?? '0', 10);
        const isOut = LIVE.includes(after.status) && after.outBefore > 0;
        if (isOut && mark !== after.epoch - 1 && !this.#lateTend) {
          wrong.push(`${id}: nobody watches the tokens that are out`);
        }
      }
    }
    return wrong;
  }

  /** Leases have their time again after Redis was away; not a third time when it went again and again at once, unless its clock went back. */
  #tick(): void {
    const now = serverNow();
    const back = this.#tickedAt - now > BACK_MS;
    const away = this.#tickedAt > 0 && now - this.#tickedAt > AWAY_MS;
    this.#clockStepsSeen = this.#stage.clockSteps.length;
    if (back || (away && this.#tickedAt !== this.#againAt)) {
      if (this.#tickedAt === this.#resumedAt) this.#againAt = now;
      this.#resumedAt = now;
    }
    this.#tickedAt = now;
  }

  /** When nothing is to do; `calmSince`: when the last trouble was over. */
  wrongWhenIdle(calmSince: number, undisturbed: boolean): string[] {
    const { pictures, pops } = this.#stage;
    const now = virtualNow();
    const held = new Map<string, number>();
    for (const [id, picture] of pictures) {
      const { silenced, wasMute } = this.#stage;
      if (picture.status === 'complete' && this.#cast.awaits(id) && !silenced && !wasMute) {
        held.set(`${id}: somebody was not told`, TOLD_MS);
      }
      if (!LIVE.includes(picture.status)) continue;
      for (const { actor } of this.#cast.workers) {
        // A call that arrives after its worker has closed takes permits, and entries, until the lease ends.
        if (actor.dead || actor.frozen || this.#cast.closed.has(actor)) continue;
        const runs = this.#cast.runsOf(actor, id);
        const permits = picture.permits[actor.name] ?? 0;
        const counting = Object.keys(picture.crashes).length > 0;
        // One that a cancel aborted has its permit until its handler ends.
        const ends = picture.status === 'cancelling';
        const used = runs.filter((run) => ends || !run.context.signal.aborted).length;
        if (permits > used && !counting)
          held.set(`${id}: ${actor.name} holds a permit and runs nothing`, UNUSED_MS);
        const mine = picture.pending.filter(({ owner }) => owner === actor.name);
        const unknown = mine.filter(({ index }) => !runs.some((run) => run.index === index));
        if (unknown.length > 0 && !counting && (permits > 0 || undisturbed)) {
          const most = undisturbed ? 0 : UNKNOWN_MS;
          held.set(`${id}: ${actor.name} has ${unknown[0]?.index} and does not run it`, most);
        }
      }
      if (this.#isTaskWorld || picture.status === 'cancelling') continue;
      const spare = picture.limit - picture.granted;
      if (readyOf(picture) > 0 && spare > 0 && pops.some((pop) => this.#mayTake(pop))) {
        held.set(`${id}: nobody takes what is ready`, IDLE_MS);
      }
    }
    for (const what of this.#since.keys()) if (!held.has(what)) this.#since.delete(what);
    const wrong: string[] = [];
    for (const [what, most] of held) {
      const since = Math.max(this.#since.get(what) ?? now, calmSince);
      this.#since.set(what, since);
      if (now - since > most) wrong.push(`${what}, for ${now - since} ms`);
    }
    return wrong;
  }

  /** Whether it has arrived, and its worker lives and has a free slot: one that was given up may be under way. */
  #mayTake({ actor, notBefore = 0 }: Trip): boolean {
    if (actor.dead || actor.frozen || notBefore > virtualNow()) return false;
    const slots = this.#cast.workers.find((worker) => worker.actor === actor)?.slots ?? 0;
    return [...this.#cast.running].filter((run) => run.actor === actor).length < slots;
  }

  #wrongState(id: string, picture: Picture): string[] {
    const { queue } = this.#stage;
    const wrong: string[] = [];
    if (queue && queue.open[id] !== picture.generation)
      wrong.push('it has not ended, and its queue does not have it open');
    const next = queue?.agenda[id];
    const parked = Boolean(picture.fields['parked']) || id in (queue?.parked ?? {});
    if (
      queue &&
      !parked &&
      // The first tick after the clock went back shifts the agenda.
      this.#clockStepsSeen === this.#stage.clockSteps.length &&
      !(id in queue.wait) &&
      next !== undefined &&
      next > serverNow() + TEND_MS
    ) {
      wrong.push(`nobody tends it for ${next - serverNow()} ms`);
    }
    if (picture.status === 'cancelling') {
      if (Object.keys(picture.due).length > 0) wrong.push('it is being cancelled, and some wait');
      return wrong;
    }
    const ready = readyOf(picture);
    const wanted = ready > 0 ? Math.min(picture.limit, picture.counts.inFlight + ready) : 0;
    const most = Math.max(
      1,
      Math.min(Math.max(4, Math.min(32, Math.floor(picture.granted / 4))), picture.granted),
    );
    const missing = Math.min(wanted - picture.granted, most) - picture.out - picture.outBefore;
    // What failed while the clock was ahead is due again as time passes, and a hold ends as time passes: the tend that is
    // scheduled for then mints.
    const wasHeld = Number(picture.fields['heldUntil'] ?? 0) > 0;
    const isLater =
      wasHeld || (this.#stage.clockSteps.length > 0 && Object.keys(picture.due).length > 0);
    if (!parked && missing > 0 && !isLater) wrong.push(`${missing} tokens were never minted`);
    return wrong;
  }

  #wrongRuns(id: string, picture: Picture): string[] {
    const wrong: string[] = [];
    for (const { actor, slots } of this.#cast.workers) {
      if (actor.dead || actor.frozen) continue;
      const runs = this.#cast.runsOf(actor, id).filter((run) => !run.context.signal.aborted);
      const permits = picture.permits[actor.name] ?? 0;
      if (runs.length > permits)
        wrong.push(`${actor.name} runs ${runs.length} under ${permits} permits`);
      if (runs.length > slots) wrong.push(`${actor.name} runs ${runs.length} in ${slots} slots`);
      const alone = Math.max(1, Number(picture.fields['maxCrashes'] ?? 3) - 1);
      const all = [...this.#cast.running].filter((run) => run.actor === actor);
      if (runs.some(({ context }) => context.crashes >= alone) && all.length > 1) {
        wrong.push(`${actor.name} runs a suspect beside ${all.length - 1} others`);
      }
      for (const { index } of runs) {
        const owner = picture.pending.find((one) => one.index === index)?.owner;
        if (owner !== undefined && owner !== actor.name)
          wrong.push(`${actor.name} runs what ${owner} has`);
      }
    }
    return wrong;
  }

  #wrongCrashes(id: string, { crashes, pending }: Picture): string[] {
    const wrong: string[] = [];
    for (const [index, n] of Object.entries(crashes)) {
      if (n > (this.#withdrawn.get(id) ?? 0)) wrong.push(`${index} has a crash that never was`);
    }
    this.#owed = this.#owed.filter((owed) => {
      if (owed.id !== id) return true;
      const owner = pending.find(({ index }) => index === owed.index)?.owner;
      if (owner === owed.worker) return true;
      if (owner !== undefined && (crashes[owed.index] ?? 0) < owed.atLeast) {
        wrong.push(`a crash of ${owed.index} was not counted`);
      }
      return false;
    });
    return wrong;
  }

  #bury(actor: Actor, sends: boolean): void {
    // Noted to run alone, it may not have begun: its end counts as its own all the same.
    for (const [id, { alone }] of this.#stage.pictures)
      for (const [index, who] of Object.entries(alone))
        if (who === actor.name) this.#cast.runs.of(id, Number(index)).isolated = true;
    if (sends) return;
    for (const [id, picture] of this.#stage.pictures) {
      const { status, permits, pending, crashes, fields } = picture;
      if (!LIVE.includes(status) || !permits[actor.name]) continue;
      for (const { owner, index } of pending) {
        if (owner !== actor.name) continue;
        // The last crash counts only for what ran alone.
        const atLeast = Math.min((crashes[index] ?? 0) + 1, Number(fields['maxCrashes']) - 1);
        this.#owed.push({ id, index, worker: owner, atLeast });
      }
    }
  }

  #change({ trip, reply }: Done, id: string, before: Picture, after: Picture): string[] {
    const wrong: string[] = [];
    const now = virtualNow();
    const { name } = trip;
    // A create that is sent again renews nothing.
    const created = name === 'create' && after.generation !== before.generation;
    if (created || ((name === 'append' || name === 'renew-producer') && reply === 'ok')) {
      this.#heard.set(id, now);
    }
    if (after.fields['producerLost'] && !before.fields['producerLost']) {
      const heard = this.#heard.get(id);
      if (heard !== undefined && now - heard < Number(after.fields['leaseMs'])) {
        wrong.push(`its producer was heard ${now - heard} ms ago, and is taken for lost`);
      }
    }
    // Noted to run alone: from then on nothing else runs there, so that its end counts as its own.
    for (const [index, who] of name === 'run-alone' ? Object.entries(after.alone) : []) {
      const worker = this.#cast.workers.find(({ actor }) => actor.name === who);
      if (worker?.actor.dead) this.#cast.runs.of(id, Number(index)).isolated = true;
    }
    const isOut = (picture: Picture) => picture.out + picture.outBefore;
    if (before.fields['parked'] && after.fields['parked'] && isOut(after) > isOut(before)) {
      wrong.push('tokens are minted though it is parked');
    }
    if (name !== 'tend' || reply !== 'ok' || !LIVE.includes(after.status)) return wrong;
    const held = (picture: Picture, who: string) =>
      (picture.permits[who] ?? 0) + picture.pending.filter(({ owner }) => owner === who).length;
    for (const who of after.consumers) {
      if (who === '~' || !before.consumers.includes(who)) continue;
      if (held(before, who) + held(after, who) === 0) wrong.push(`the consumer ${who} stays`);
    }
    const at = serverNow();
    for (const [who, ends] of Object.entries(after.leases)) {
      // A tend that was under way for so long cannot know: it leaves that to the next.
      if (at - Number(trip.argv?.[TICKED_AT]) > AWAY_MS) break;
      if (Math.max(ends, this.#resumedAt + LEASE_MS) <= at)
        wrong.push(`the lease of ${who} has ended, and a tend leaves it its permits`);
    }
    const { backAt, outages } = this.#stage;
    for (const who of Object.keys(before.permits)) {
      if (who in after.permits) continue;
      this.#withdrawn.set(id, (this.#withdrawn.get(id) ?? 0) + 1);
      const lives = this.#cast.workers.some(
        ({ actor }) => actor.name === who && !actor.dead && !actor.frozen,
      );
      if (lives && outages === 1 && now < backAt + LEASE_MS) {
        wrong.push(`${who} had no time to renew`);
      }
    }
    return wrong;
  }

  /** Tokens in the lists that the request does not count. */
  #uncounted(): string[] {
    const tokens = Object.values(this.#stage.queue?.lists ?? {}).flat();
    const wrong: string[] = [];
    for (const [id, { status, generation, epoch, out, outBefore }] of this.#stage.pictures) {
      if (status !== 'open' && status !== 'sealed') continue;
      const of = (e: number) =>
        tokens.filter((token) => token === `${id}~${generation}~${e}`).length;
      if (of(epoch) > out || of(epoch - 1) > outBefore) wrong.push(`${id}: a token is not counted`);
    }
    return wrong;
  }
}
