import type { Connection } from './connection.js';
import { CLAIMS_PER_TICK, HISTORY_MAX, TIMES } from './defaults.js';
import { type QueueKeys, queueKeys } from './keys.js';
import { runScript } from './run-script.js';
import type { ScriptName } from './scripts.generated.js';

/** What a script on the request side minted and the queue side is to push. */
export interface Minted {
  readonly id: string;
  readonly generation: number;
  readonly mint: number;
  readonly epoch: number;
  readonly priority: number;
}

export interface Claim {
  readonly id: string;
  readonly generation: number;
  readonly passed: string;
  readonly claim: number;
}

export interface Tick {
  /** Server time of the tick. */
  readonly now: number;
  /** Server time of the earliest agenda entry, or -1. */
  readonly next: number;
  /** Live workers of the queue. */
  readonly fleet: number;
  readonly claims: readonly Claim[];
  readonly parked: readonly { id: string; generation: number; task: string }[];
}

/** The scripts of the queue side, in the order of a request's way. Hash slot of `{<queue>}`. */
export class QueueCommands {
  readonly keys: QueueKeys;
  readonly #connection: Connection;

  constructor(connection: Connection, queue: string) {
    this.#connection = connection;
    this.keys = queueKeys(queue);
  }

  #run(name: ScriptName, keys: readonly string[], args: readonly (string | number)[]) {
    return runScript(this.#connection.client, name, keys, args);
  }

  /** Opens an id; answers its generation. */
  async intent(id: string): Promise<number> {
    const { open, agenda, counters } = this.keys;
    const reply = await this.#run(
      'intent',
      [open, agenda, counters],
      [id, TIMES.intentGraceMs, TIMES.historyMs],
    );
    return reply[1] as number;
  }

  /** Pushes minted tokens; 'closed' when the request is not open any more. */
  async push({ id, generation, mint, epoch, priority }: Minted): Promise<'pushed' | 'closed'> {
    const { open, pushed, list } = this.keys;
    const reply = await this.#run(
      'push',
      [open, pushed, list(priority)],
      [id, generation, epoch, mint, priority],
    );
    return reply[0] as 'pushed' | 'closed';
  }

  /** Whether anybody else of the same or a higher priority waits. */
  async contended(id: string, priority: number): Promise<boolean> {
    const reply = await this.#run('contended', this.keys.lists.slice(0, priority + 1), [id]);
    return reply[0] === 'leave';
  }

  /** Returns minted tokens and takes up to `take` others, in one call. */
  async swap({ id, generation, mint, epoch, priority }: Minted, take: number): Promise<string[]> {
    const { open, pushed, lists } = this.keys;
    const args = [id, generation, epoch, mint, priority, priority + 1, take];
    const reply = await this.#run('swap', [open, pushed, ...lists], args);
    return reply.slice(1) as string[];
  }

  /** Puts a request aside whose task this worker does not serve. */
  async park(id: string, generation: number, task: string): Promise<void> {
    const { open, agenda, parked } = this.keys;
    await this.#run('park', [open, agenda, parked], [id, generation, task, TIMES.slowMs]);
  }

  /** One look at the agenda. `worker` is '' for producers and notifiers. */
  async tick(worker: string, info: string): Promise<Tick> {
    const { open, agenda, wait, marks, pushed, parked, workers, workerInfo, lists } = this.keys;
    const reply = await this.#run(
      'tick',
      [open, agenda, wait, marks, pushed, parked, workers, workerInfo, ...lists],
      [worker, info, TIMES.claimMs, TIMES.graceMs, CLAIMS_PER_TICK, TIMES.workerGoneMs],
    );
    const [, now, next, fleet, flat, aside] = reply as [
      string,
      number,
      number,
      number,
      string[],
      string[],
    ];
    const claims: Claim[] = [];
    for (let i = 0; i < flat.length; i += 4) {
      claims.push({
        id: flat[i] as string,
        generation: Number(flat[i + 1]),
        passed: String(flat[i + 2]),
        claim: Number(flat[i + 3]),
      });
    }
    const waiting: { id: string; generation: number; task: string }[] = [];
    for (let i = 0; i < aside.length; i += 2) {
      const [, generation, task] = /^(\d+) (.*)$/.exec(aside[i + 1] as string) ?? [];
      waiting.push({ id: aside[i] as string, generation: Number(generation), task: task ?? '' });
    }
    return { now, next, fleet, claims, parked: waiting };
  }

  /** Ends a tend: pushes, then puts the request to sleep if the claim still stands. */
  async writeBack(
    { id, generation, claim }: Claim,
    tended: {
      mint: number;
      epoch: number;
      priority: number;
      before: string;
      next: number;
      parked: string;
    },
  ): Promise<'ok' | 'moved' | 'closed'> {
    const { open, agenda, wait, marks, pushed, parked, list } = this.keys;
    const { mint, epoch, priority, before, next } = tended;
    const reply = await this.#run(
      'write-back',
      [open, agenda, wait, marks, pushed, parked, list(priority)],
      [
        id,
        generation,
        claim,
        mint,
        epoch,
        priority,
        before,
        next,
        tended.parked,
        TIMES.graceMs,
        TIMES.slowMs,
      ],
    );
    return reply[0] as 'ok' | 'moved' | 'closed';
  }

  /** Brings the next look at a request forward to `time` (server ms; 0: now). */
  async note(id: string, generation: number, time: number): Promise<void> {
    const { open, agenda } = this.keys;
    await this.#run('note', [open, agenda], [id, generation, time]);
  }

  /** Takes an ended request off the queue side. */
  async finish(id: string, generation: number, outcome: string): Promise<void> {
    const k = this.keys;
    await this.#run(
      'finish',
      [
        k.open,
        k.agenda,
        k.wait,
        k.marks,
        k.parked,
        k.pushed,
        k.counters,
        k.history,
        k.errors,
        k.workers,
        k.workerInfo,
        ...k.lists,
      ],
      [id, generation, outcome, TIMES.historyMs, HISTORY_MAX],
    );
  }

  /** Strikes a worker out of the registry. */
  async depart(worker: string): Promise<void> {
    const k = this.keys;
    await this.#run(
      'depart',
      [
        k.open,
        k.workers,
        k.workerInfo,
        k.history,
        k.counters,
        k.errors,
        k.pushed,
        k.parked,
        ...k.lists,
      ],
      [worker],
    );
  }

  /** What the queue side knows of an id: its open generation, or when it ended (server ms). */
  async whereabouts(id: string): Promise<{ open?: number; endedAt?: number }> {
    const { client } = this.#connection;
    const [open, ended] = await Promise.all([
      client.hget(this.keys.open, id),
      client.zscore(this.keys.history, id),
    ]);
    return {
      ...(open ? { open: Number(open) } : {}),
      ...(ended ? { endedAt: Number(ended) } : {}),
    };
  }

  /** Whether a live worker of the queue says that it serves `task`. */
  async serves(task: string): Promise<boolean> {
    const infos = await this.#connection.client.hvals(this.keys.workerInfo);
    return infos.some((text) => {
      const { tasks } = JSON.parse(text) as { tasks: '*' | string[] };
      return tasks === '*' || tasks.includes(task);
    });
  }
}
