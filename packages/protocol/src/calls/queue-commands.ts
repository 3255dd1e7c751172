import { CLAIMS_PER_TICK, HISTORY_MAX, PARKED_PER_TICK, TIMES } from '../contract/defaults.js';
import { type QueueKeys, queueKeys } from '../contract/keys.js';
import { Lanes, laneKeys, type Place } from '../contract/lanes.js';
import type { LongestRun } from '../contract/run-times.js';
import type { Client } from '../redis/client.js';
import type { Connection } from '../redis/connection.js';
import { redisError } from '../redis/redis-error.js';
import { runBehind } from '../scripts/run-behind.js';
import { callOf, type Reply, run, runCall, type ScriptCall } from '../scripts/run-script.js';

/** What a script on the request side minted and the queue side is to push. */
export interface Minted extends Place {
  readonly id: string;
  readonly generation: number;
  readonly mint: number;
  readonly epoch: number;
}

/** What `contended` is told of a request that is expedited. */
export interface Expedited {
  readonly due: number;
  readonly generation: number;
}

/** What the queue side answers to who tells it something of an open request; 'closed': it has none such open. */
export type Told = 'done' | 'closed';

/** A request to be tended, and the claim under which that is written back. */
export type Claim = Reply<'tick'>['claims'][number];

/** A worker as the registry shows it. */
export interface RegisteredWorker {
  /** Boot id. */
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** How many slots it has, and how many handlers ran at its last sign of life. */
  readonly concurrency: number;
  readonly running: number;
  /** Names of the tasks that it serves; '*': all. */
  readonly tasks: '*' | readonly string[];
  /** When it was started, by its own clock, in ms since 1970. */
  readonly startedAt: number;
  /** Its last sign of life, by the Redis server's clock, in ms since 1970. */
  readonly seenAt: number;
  /** Whether it takes nothing more and ends as its handlers do. */
  readonly draining: boolean;
  /** What runs longest there as of its last sign of life, longest first: one of each request, of ten at most. */
  readonly longest: readonly LongestRun[];
  /** How many slots are held by handlers that go on although they were told to stop. */
  readonly leftovers: number;
}

/** What the queue side knows of an id: its open generation, or when it ended, in ms of the server's clock. */
export interface Whereabouts {
  readonly open?: number;
  readonly endedAt?: number;
}

/** What the queue side holds at one moment. */
export interface QueueCounts {
  /** Requests that have not ended. */
  readonly open: number;
  /** Those of them whose task no worker that met them serves. */
  readonly parked: number;
  /** Registered workers. */
  readonly workers: number;
  /**
   * When the paused queue goes on by itself, in ms since 1970 by the server's clock; 0: it was paused without an
   * end, and goes on when it is resumed. undefined: it is not paused. So ask for `!== undefined`.
   */
  readonly pausedUntil: number | undefined;
  /** Requests that ended within the last week or so, by outcome. */
  readonly ended: {
    readonly succeeded: number;
    readonly failed: number;
    readonly cancelled: number;
  };
  /** Tokens that wait, by priority; priorities without any are left out. */
  readonly tokens: Readonly<Record<number, number>>;
}

export interface Tick extends Omit<Reply<'tick'>, 'verdict' | 'parked' | 'lanes' | 'after'> {
  readonly parked: readonly { id: string; generation: number; task: string }[];
  /** Behind which entry of their index to go on; '': these were all. */
  readonly parkedAfter: string;
}

/** Which parked requests a worker looks for: of what it serves, and where it goes on. */
export interface Seeking {
  /** ' name name ' in the order in which they are looked for, or '*' for all; '': for none. */
  readonly tasks: string;
  /** What the last tick answered, of the first of them. */
  readonly after: string;
}

/** Ended requests that are read in one call. */
const ENDED_PAGE = 100;

/** How something is read: how often, and for how long, it is tried. */
export type Patiently = <T>(read: () => Promise<T>) => Promise<T>;
const once: Patiently = (read) => read();

/** The scripts of the queue side, in the order of a request's way. Hash slot of `{<queue>}`. */
export class QueueCommands {
  readonly keys: QueueKeys;
  /** The lanes of expedited requests, as far as this process knows them. */
  readonly lanes: Lanes;
  readonly #connection: Connection;

  constructor(connection: Connection, queue: string) {
    this.#connection = connection;
    this.keys = queueKeys(queue);
    this.lanes = new Lanes(this.keys);
  }

  /**
   * The id that this key of deduplication stands for: `id`, for `periodMs` from now, unless it stands for
   * another one already. Asked again, it answers the same.
   */
  async dedupe(key: string, id: string, periodMs: number): Promise<string> {
    const known = await this.#connection.client
      .set(this.keys.dedupe(key), id, 'PX', periodMs, 'NX', 'GET')
      .catch((error: unknown) => {
        throw redisError(error, 'dedupe');
      });
    return known ?? id;
  }

  /** Opens an id; answers its generation. `above`: it is greater than this one, as a 'void' says; 0: any. */
  async intent(id: string, above = 0): Promise<number> {
    const args = { id, graceMs: TIMES.intentGraceMs, idleMs: TIMES.historyMs, above };
    return (await run(this.#connection.client, 'intent', this.keys, args)).generation;
  }

  /**
   * Opens the id of a living request again if this side has lost it; answers whether it had. `instead`: a
   * later generation that was refused because of this life, and whose place it takes.
   */
  async reopen(id: string, generation: number, instead = 0): Promise<boolean> {
    const args = { id, generation, idleMs: TIMES.historyMs, instead };
    return (await run(this.#connection.client, 'reopen', this.keys, args)).verdict === 'reopened';
  }

  /**
   * Pushes minted tokens, or none; 'closed' when the request is not open. Who knows that it lives calls this
   * through `tellOpen`. `client`: over which connection, as a WAIT counts what its own connection wrote.
   */
  async push(minted: Minted, client: Client = this.#connection.client): Promise<Told> {
    const { verdict } = await runCall(client, this.pushCall(minted));
    return verdict === 'closed' ? 'closed' : 'done';
  }

  /** What `push` sends, for who sends it together with other scripts. */
  pushCall(minted: Minted): ScriptCall<'push'> {
    const { open, pushed } = this.keys;
    const { id, generation, mint, epoch, priority } = minted;
    return callOf(
      'push',
      { open, pushed, list: this.lanes.listOf(minted) },
      { id, generation, epoch, count: mint, priority, ...this.#lane(minted) },
    );
  }

  /** Whether anybody else of the same or a higher priority waits. */
  async contended(id: string, priority: number, expedited?: Expedited): Promise<boolean> {
    const { due = 0, generation = 0 } = expedited ?? {};
    const lists = this.lanes.upTo({ priority, due });
    const args = due ? { id, generation, due } : { id };
    const { verdict } = await run(this.#connection.client, 'contended', { lists }, args);
    return verdict === 'leave';
  }

  /** Learns which lanes are used. A tick does too; this is for who may have missed a message. */
  async learnLanes(): Promise<void> {
    const used = await this.#read((client) => client.hget(this.keys.pushed, 'lanes'));
    this.lanes.learn(used ?? '');
  }

  /** What the scripts are told besides of a place in a lane. */
  #lane({ due }: Place): { readonly due?: number; readonly channel?: string } {
    return due ? { due, channel: this.keys.control } : {};
  }

  /**
   * Returns minted tokens and takes up to `take` others, in one call. What it returns is the last that
   * it would take, so no list behind that is named; with nothing to return, taking is all there is to do.
   * `onClosed`: the request is not open, so nothing was returned.
   */
  async swap(minted: Minted, take: number, onClosed = () => {}): Promise<readonly string[]> {
    if (minted.mint === 0) return this.#pop(take);
    const { open, pushed } = this.keys;
    const { id, generation, mint, epoch, priority } = minted;
    const { verdict, tokens } = await run(
      this.#connection.client,
      'swap',
      { open, pushed, lists: this.lanes.upTo(minted) },
      { id, generation, epoch, count: mint, priority, take, ...this.#lane(minted) },
    );
    if (verdict === 'closed') onClosed();
    return tokens;
  }

  async #pop(take: number): Promise<string[]> {
    const { lists } = this.lanes;
    const popped = await this.#read((client) =>
      client.call('lmpop', lists.length, ...lists, 'RIGHT', 'COUNT', take),
    );
    return (popped as [string, string[]] | null)?.[1] ?? [];
  }

  /** Puts a request aside whose task this worker does not serve. */
  async park(id: string, generation: number, task: string): Promise<Told> {
    const args = { id, generation, task, slowMs: TIMES.slowMs };
    const { verdict } = await run(this.#connection.client, 'park', this.keys, args);
    return verdict === 'closed' ? 'closed' : 'done';
  }

  /** One look at the agenda. `worker` is '' for producers and notifiers, and `seeking` is left out. */
  async tick(
    worker: string,
    info: string,
    seeking: Seeking = { tasks: '', after: '' },
  ): Promise<Tick> {
    const lanes = this.lanes.text;
    const { claimMs: lockMs, graceMs, workerGoneMs: goneMs, awayMs, awayPerWorkerMs } = TIMES;
    const reply = await run(
      this.#connection.client,
      'tick',
      { ...this.keys, lists: [...this.keys.lists, ...laneKeys(this.keys, lanes)] },
      {
        ...{ worker, info, lockMs, graceMs, max: CLAIMS_PER_TICK, goneMs, awayMs },
        ...{ awayPerWorkerMs, lanes, tasks: seeking.tasks, after: seeking.after },
        maxParked: PARKED_PER_TICK,
      },
    );
    this.lanes.learn(reply.lanes);
    const parked = reply.parked.map(({ id, life }) => {
      const [, generation, task = ''] = /^(\d+) (.*)$/.exec(life) ?? [];
      return { id, generation: Number(generation), task };
    });
    return { ...reply, parked, parkedAfter: reply.after };
  }

  /** Ends a tend: pushes, then puts the request to sleep if the claim still stands. */
  async writeBack(
    { id, generation, claim }: Claim,
    tended: Place & {
      mint: number;
      epoch: number;
      before: string;
      next: number;
      parked: string;
    },
  ): Promise<Reply<'write-back'>['verdict']> {
    const { mint, epoch, priority, before, next, parked: parkedTask } = tended;
    const { graceMs, slowMs } = TIMES;
    const { verdict } = await run(
      this.#connection.client,
      'write-back',
      { ...this.keys, list: this.lanes.listOf(tended) },
      {
        ...{ id, generation, claim, mint, epoch, priority, before, next, parkedTask },
        ...{ graceMs, slowMs, ...this.#lane(tended) },
      },
    );
    return verdict;
  }

  /** Brings the next look at a request forward to `time` (server ms; 0: now). */
  async note(id: string, generation: number, time: number): Promise<Told> {
    const args = { id, generation, time };
    const { verdict } = await run(this.#connection.client, 'note', this.keys, args);
    return verdict === 'closed' ? 'closed' : 'done';
  }

  /** Another number behind each new connection, as that of Connection. */
  get epoch(): number {
    return this.#connection.epoch;
  }

  /**
   * Takes an ended request off the queue side. `spentAt`: as its completion was answered · `epoch`: the end
   * was heard of over the connection of this number, see run-behind.ts.
   * @returns false when that connection is gone, or broke before it answered
   */
  async finish(
    id: string,
    generation: number,
    outcome: string,
    spentAt: number | undefined = 0,
    epoch = this.epoch,
  ): Promise<boolean> {
    const { historyMs } = TIMES;
    const args = { id, generation, outcome, historyMs, historyMax: HISTORY_MAX, spentAt };
    return this.#clearingLanes((lists, lanes) =>
      runBehind(
        this.#connection,
        epoch,
        callOf('finish', { ...this.keys, lists }, { ...args, lanes }),
      ),
    );
  }

  /** What was kept of this life is unlinked, or it lives on. */
  async forgetSpent(life: string): Promise<void> {
    await this.#read((client) => client.zrem(this.keys.spent, life));
  }

  /** Strikes a worker out of the registry. */
  async depart(worker: string): Promise<void> {
    await this.#clearingLanes((lists, lanes) =>
      run(this.#connection.client, 'depart', { ...this.keys, lists }, { worker, lanes }),
    );
  }

  /**
   * When nothing is open any more, the lanes go too. They are not passed with every call, as few queues
   * have any; so the script says which there are, and is called again with those.
   */
  async #clearingLanes(
    clear: (
      lists: readonly string[],
      lanes: string,
    ) => Promise<{ readonly lanes: string } | undefined>,
  ): Promise<boolean> {
    let lanes = '';
    do {
      const reply = await clear([...this.keys.lists, ...laneKeys(this.keys, lanes)], lanes);
      if (!reply) return false;
      ({ lanes } = reply);
    } while (lanes !== '');
    return true;
  }

  /** What the queue side knows of an id: its open generation, or when it ended (server ms). */
  async whereabouts(id: string): Promise<Whereabouts> {
    const [open, ended] = await this.#read((client) =>
      Promise.all([client.hget(this.keys.open, id), client.zscore(this.keys.history, id)]),
    );
    return {
      ...(open ? { open: Number(open) } : {}),
      ...(ended ? { endedAt: Number(ended) } : {}),
    };
  }

  /**
   * Ids of all open requests, each once; those that come or go meanwhile may be missed. `patiently`: how
   * each page is read.
   */
  async *openIds(patiently: Patiently = once): AsyncGenerator<string> {
    for await (const page of this.openRequests(patiently)) for (const { id } of page) yield id;
  }

  /** The same with their generations, page by page. */
  async *openRequests(
    patiently: Patiently = once,
  ): AsyncGenerator<{ readonly id: string; readonly generation: number }[]> {
    const seen = new Set<string>();
    let cursor = '0';
    do {
      const from = cursor;
      const [next, fields] = await patiently(() =>
        this.#read((client) => client.hscan(this.keys.open, from, 'COUNT', 500)),
      );
      cursor = next;
      const page: { readonly id: string; readonly generation: number }[] = [];
      for (let i = 0; i < fields.length; i += 2) {
        const id = fields[i] as string;
        if (seen.has(id)) continue;
        seen.add(id);
        page.push({ id, generation: Number(fields[i + 1]) });
      }
      yield page;
    } while (cursor !== '0');
  }

  /** Requests that ended, and when by the server's clock, the last one first. `patiently`: as above. */
  async *ended(
    patiently: Patiently = once,
  ): AsyncGenerator<{ readonly id: string; readonly at: number }> {
    for (let from = 0; ; from += ENDED_PAGE) {
      const to = String(from + ENDED_PAGE - 1);
      const page = await patiently(() =>
        this.#read((client) =>
          client.zrange(this.keys.history, String(from), to, 'REV', 'WITHSCORES'),
        ),
      );
      for (let i = 0; i < page.length; i += 2)
        yield { id: page[i] as string, at: Number(page[i + 1]) };
      if (page.length < 2 * ENDED_PAGE) return;
    }
  }

  /** The workers of this queue, in the order of their start. */
  async workers(): Promise<RegisteredWorker[]> {
    const { workers, workerInfo } = this.keys;
    const [seen, infos] = await this.#read((client) =>
      Promise.all([client.zrange(workers, '0', '-1', 'WITHSCORES'), client.hgetall(workerInfo)]),
    );
    const found: RegisteredWorker[] = [];
    for (let i = 0; i < seen.length; i += 2) {
      const id = seen[i] as string;
      const info = infos[id];
      if (!info) continue;
      // Workers of an earlier version say none of these.
      const said = { draining: false, longest: [], leftovers: 0, ...JSON.parse(info) };
      found.push({ id, ...said, seenAt: Number(seen[i + 1]) });
    }
    return found.sort((a, b) => a.startedAt - b.startedAt);
  }

  async counts(): Promise<QueueCounts> {
    const { open, parked, workers, counters, paused, pushed, lists } = this.keys;
    const [opened, aside, alive, ended, until, used, ...lengths] = await this.#read((client) =>
      Promise.all([
        client.hlen(open),
        client.hlen(parked),
        client.zcard(workers),
        client.hmget(counters, 'succeeded', 'failed', 'cancelled'),
        client.hget(paused, 'until'),
        client.hget(pushed, 'lanes'),
        ...lists.map((list) => client.llen(list)),
      ]),
    );
    const [succeeded, failed, cancelled] = ended.map(Number) as [number, number, number];
    for (const lane of laneKeys(this.keys, used ?? '')) {
      const priority = Number(lane.split(':').at(-2));
      lengths[priority] =
        (lengths[priority] ?? 0) + (await this.#read((client) => client.llen(lane)));
    }
    const waiting = lengths.map((tokens, priority) => [priority, tokens] as const);
    return {
      open: opened,
      parked: aside,
      workers: alive,
      pausedUntil: until === null ? undefined : Number(until),
      ended: { succeeded, failed, cancelled },
      tokens: Object.fromEntries(waiting.filter(([, tokens]) => tokens > 0)),
    };
  }

  async #read<T>(read: (client: Client) => Promise<T>): Promise<T> {
    try {
      return await read(this.#connection.client);
    } catch (error) {
      throw redisError(error, 'read the queue');
    }
  }

  /** Why nothing of it may be started: it is paused (until when; 0: until it is resumed), or has no worker. */
  async standstill(): Promise<{ pausedUntil: number | undefined; workers: number }> {
    const { paused, workers } = this.keys;
    const [until, alive] = await this.#read((client) =>
      Promise.all([client.hget(paused, 'until'), client.zcard(workers)]),
    );
    return { pausedUntil: until === null ? undefined : Number(until), workers: alive };
  }

  /** Whether a live worker of the queue says that it serves `task`. */
  async serves(task: string): Promise<boolean> {
    const infos = await this.#read((client) => client.hvals(this.keys.workerInfo));
    return infos.some((text) => {
      const { tasks } = JSON.parse(text) as { tasks: '*' | string[] };
      return tasks === '*' || tasks.includes(task);
    });
  }
}
