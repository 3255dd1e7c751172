import { CLAIMS_PER_TICK, HISTORY_MAX, PARKED_PER_TICK, TIMES } from '../../contract/defaults.js';
import { requestKeys } from '../../contract/keys.js';
import { laneKeys, listKeys, type Place } from '../../contract/lanes.js';
import type { Argument } from '../../redis/client.js';
import { redisError } from '../../redis/redis-error.js';
import { runBehind } from '../../scripts/run-behind.js';
import { callOf, type Reply, run } from '../../scripts/run-script.js';
import { Batcher } from '../batcher.js';
import { type QueueReply, QueueTokens } from './queue-tokens.js';

/** A request to be tended, and the claim under which the result is written back. */
export type Claim = Reply<'tick'>['claims'][number];

export interface Tick extends Omit<Reply<'tick'>, 'verdict' | 'parked' | 'lanes'> {
  readonly parked: readonly { id: string; generation: number; task: string }[];
}

/** What the requests of one `submit` have in common. */
export interface SubmitHead extends Pick<Place, 'priority'> {
  readonly isExpedited: boolean;
  readonly leaseMs: number;
  /** JSON array of field, value, …: the options, as `create` stores them. */
  readonly options: string;
}

/** A request of which all items are known. */
export interface SubmitBody {
  readonly id: string;
  /** Name of the submission. */
  readonly owner: string;
  /** Name of the call that submits it; '': no other call knows the id. */
  readonly call: string;
  readonly payloads: readonly string[];
}

/** How a generation of a request ended, for the queue side. */
interface End {
  readonly id: string;
  readonly generation: number;
  /** 'succeeded', 'failed', 'cancelled', 'dropped' or 'gone'. */
  readonly outcome: string;
  /** From the reply that completed it; 0: there was none. */
  readonly spentAt: number;
  /** Number of the connection over which it was reported. */
  readonly epoch: number;
}

/** The calls about an id on the queue side, from `intent` to `finish`, and the agenda. Hash slot of `{<queue>}`. */
export class QueueCommands extends QueueTokens {
  readonly #ends = new Batcher<End, boolean>({
    // cure: ends in one call were reported over one connection
    kindOf: ({ epoch }) => epoch,
    send: async (ends) => {
      const sent = await this.#sendEnds(ends, ends[0].epoch);
      return ends.map(() => sent);
    },
  });
  /** The lists that were in use when the queue was cleared last, as the scripts have them: '0,50,50:due'. */
  #lists = '';

  /**
   * The id that this key of deduplication names: `id`, for `periodMs` from now, unless it already names another one. A
   * repeated call answers the same.
   */
  async dedupe(key: string, id: string, periodMs: number): Promise<string> {
    const known = await this.connection.client
      .set(this.keys.dedupe(key), id, 'PX', periodMs, 'NX', 'GET')
      .catch((error: unknown) => {
        throw redisError(error, 'dedupe');
      });
    return known ?? id;
  }

  /** Opens an id; answers its generation, which is greater than `above`, a generation of a 'void'; 0: any. */
  async intent(id: string, above = 0): Promise<number> {
    this.#ends.flush();
    const args = { id, graceMs: TIMES.intentGraceMs, above };
    return (await run(this.connection.client, 'intent', this.keys, args)).generation;
  }

  /**
   * Submits whole requests in one call, where one server has both sides. Answers the generation of each; 0: something
   * of its id is there, and the separate calls have to find out what.
   */
  async submit(head: SubmitHead, bodies: readonly SubmitBody[]): Promise<readonly number[]> {
    this.#ends.flush();
    const { open, agenda, counters, pushed, control, list, lane } = this.keys;
    const { priority, isExpedited, leaseMs, options } = head;
    const requests: string[] = [];
    const submissions: Argument[] = [];
    for (const { id, owner, call, payloads } of bodies) {
      const { request, work, results } = requestKeys(id);
      requests.push(request, work, results);
      submissions.push(id, owner, call, payloads.length, ...payloads);
    }
    const { intentGraceMs: graceMs, createWindowMs: windowMs } = TIMES;
    const { generations } = await run(
      this.connection.client,
      'submit',
      {
        list: isExpedited ? lane(priority) : list(priority),
        open,
        agenda,
        counters,
        pushed,
        requests,
      },
      {
        ...{ graceMs, windowMs, leaseMs, priority, channel: control },
        options,
        submissions,
      },
    );
    return generations;
  }

  /**
   * Opens the id of an unended request again if this side has lost it; answers whether it had. `instead`: a later
   * generation, refused because this one exists, which this one replaces.
   */
  async reopen(id: string, generation: number, instead = 0): Promise<boolean> {
    const args = { id, generation, instead };
    return (await run(this.connection.client, 'reopen', this.keys, args)).verdict === 'reopened';
  }

  /**
   * Claims what is due on the agenda, and takes parked requests of `tasks`: ' name name ', '*' for all, '' for none. For
   * producers and notifiers `worker` is ''. `rests`: the caller may tick next after more than `TIMES.tickMs`, and has no
   * lease.
   */
  async tick(worker: string, info: string, tasks = '', rests = false): Promise<Tick> {
    const lanes = this.lanes.text;
    const { claimMs: lockMs, graceMs, workerGoneMs: goneMs, awayMs, awayPerWorkerMs } = TIMES;
    const reply = await run(
      this.connection.client,
      'tick',
      { ...this.keys, lists: [...this.keys.lists, ...laneKeys(this.keys, lanes)] },
      {
        ...{ worker, info, lockMs, graceMs, max: CLAIMS_PER_TICK, goneMs, awayMs },
        ...{ awayPerWorkerMs, rests: Number(rests), lanes, tasks, maxParked: PARKED_PER_TICK },
      },
    );
    this.lanes.learn(reply.lanes);
    const parked = reply.parked.map(({ id, value }) => {
      const [, generation, task = ''] = /^(\d+) (.*)$/.exec(value) ?? [];
      return { id, generation: Number(generation), task };
    });
    return { ...reply, parked };
  }

  /**
   * Ends a tend: pushes the tokens, then puts the request to sleep if the claim still holds. Answers the server's time of
   * the next tend; 0: the request waits for its tokens.
   */
  async writeBack(
    { id, generation, claim }: Claim,
    tended: Place & {
      mint: number;
      epoch: number;
      before: string;
      next: number;
      parked: string;
    },
  ): Promise<number | 'moved' | 'closed'> {
    const { mint, epoch, priority, before, next, parked: parkedTask } = tended;
    const { graceMs, slowMs } = TIMES;
    const reply = await run(
      this.connection.client,
      'write-back',
      { ...this.keys, list: this.lanes.listOf(tended) },
      {
        ...{ id, generation, claim, mint, epoch, priority, before, next, parkedTask },
        ...{ graceMs, slowMs, atATime: CLAIMS_PER_TICK, ...this.lane(tended) },
      },
    );
    return reply.verdict === 'ok' ? reply.next : reply.verdict;
  }

  /**
   * Brings the next tend of a request forward to `time` (server ms; 0: now). `afterMs`: with time 0, so many ms from
   * now.
   */
  async scheduleTend(
    id: string,
    generation: number,
    time: number,
    afterMs?: number,
  ): Promise<QueueReply> {
    const args =
      afterMs === undefined ? { id, generation, time } : { id, generation, time, afterMs };
    const { verdict } = await run(this.connection.client, 'schedule-tend', this.keys, args);
    return verdict === 'closed' ? 'closed' : 'done';
  }

  /** A number that changes with each new connection, see `Connection.epoch`. */
  get epoch(): number {
    return this.connection.epoch;
  }

  /**
   * Removes an ended request from the queue side, in one call with all that end in this turn of the event loop.
   * `spentAt`: from the reply that completed it · `epoch`: number of the connection over which the end was reported, see
   * run-behind.ts.
   * @returns false when that connection is gone, or broke before the reply
   */
  finish(
    id: string,
    generation: number,
    outcome: string,
    spentAt: number | undefined = 0,
    epoch = this.epoch,
  ): Promise<boolean> {
    return this.#ends.ask({ id, generation, outcome, spentAt, epoch });
  }

  #sendEnds(ends: readonly End[], epoch: number): Promise<boolean> {
    const args = { historyMs: TIMES.historyMs, historyMax: HISTORY_MAX, ends };
    return this.#clearing((lists, named) =>
      runBehind(
        this.connection,
        epoch,
        callOf('finish', { ...this.keys, lists }, { named, ...args }),
      ),
    );
  }

  /** Removes the note to unlink the keys of this generation ('id~generation'): they are unlinked, or still needed. */
  async forgetSpent(spent: string): Promise<void> {
    await this.read((client) => client.zrem(this.keys.spent, spent));
  }

  /** Removes a worker from the registry. `info`: as its next tick would have named it. */
  async deregister(worker: string, info = ''): Promise<void> {
    this.#ends.flush();
    await this.#clearing((lists, named) =>
      run(this.connection.client, 'deregister', { ...this.keys, lists }, { worker, named, info }),
    );
  }

  /**
   * When no request is open any more, the lists are removed too. Few queues use many, so a call names those that were
   * in use the last time. If others are, the script replies which, and is called again with those.
   */
  async #clearing(
    clear: (
      lists: readonly string[],
      named: string,
    ) => Promise<{ readonly left: string } | undefined>,
  ): Promise<boolean> {
    for (;;) {
      const reply = await clear(listKeys(this.keys, this.#lists), this.#lists);
      if (!reply) return false;
      if (reply.left === '') return true;
      this.#lists = reply.left;
    }
  }
}
