import type { PieceworkError } from '@piecework/protocol';
import type { SubRequest, Worker, WorkerOptions } from '@piecework/worker';
import { payloads, type Stage } from './stage.js';

/*
 * Consumers that pull, two at once, whose worker's n-th call goes wrong. They take one after the other,
 * leave the loop with one in hand, settle it, and come again. When the process ended, others take over.
 */

const ITEMS = 8;
/** With so many a consumer leaves its loop. */
const ROUND = 3;
/** What the stage's workers have else. */
const NO_HANDLER = { handler: undefined } as unknown as Partial<WorkerOptions>;

/** Settles it as the handlers of the stage end, and waits until the server has it. */
async function work(stage: Stage, s: SubRequest): Promise<void> {
  try {
    s.succeed(await stage.handler(s.payload, s));
  } catch (error) {
    s.fail(error);
  }
  await s.settled;
}

/** Until the worker is closed. */
async function consume(stage: Stage, worker: Worker): Promise<void> {
  for (let inHand: SubRequest | undefined; ; inHand = undefined) {
    let taken = 0;
    for await (const s of worker.subRequests()) {
      taken += 1;
      inHand = s;
      if (taken === ROUND) break;
      await work(stage, s);
    }
    if (taken < ROUND || !inHand) return;
    await work(stage, inHand);
  }
}

class Consumers {
  readonly #stage: Stage;
  readonly #workers: Worker[] = [];
  readonly #loops: Promise<void>[] = [];
  #ending = false;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  async come(how: 'faulty' | 'well'): Promise<void> {
    const worker = await this.#stage.worker(how, NO_HANDLER);
    // All may be over by now.
    if (this.#ending) return;
    this.#workers.push(worker);
    for (let i = 0; i < 2; i += 1) this.#loops.push(this.#consume(worker, how));
  }

  async #consume(worker: Worker, how: 'faulty' | 'well'): Promise<void> {
    for (;;) {
      try {
        await consume(this.#stage, worker);
        return;
      } catch (error) {
        if (this.#ending || this.#stage.faults.dead) return;
        // The start was the one call that went wrong, and may be asked for again.
        if (how === 'well' || (error as PieceworkError).retryable !== true) throw error;
      }
    }
  }

  /** Closes the workers, and sees every loop end. */
  async end(): Promise<void> {
    this.#ending = true;
    const timeoutMs = this.#stage.faults.dead ? 0 : 5_000;
    await Promise.all(this.#workers.map((worker) => worker.close({ timeoutMs })));
    await Promise.all(this.#loops);
  }
}

async function pulled(stage: Stage, attempts: number): Promise<string[]> {
  const id = stage.id('request');
  await (await stage.producer('well')).submit(payloads(ITEMS), { id, limit: 3, attempts });
  const consumers = new Consumers(stage);
  void stage.faults.died.then(() => {
    if (!stage.closing) stage.comes(consumers.come('well'));
  });
  await consumers.come('faulty');
  await stage.heal(Promise.resolve());
  await consumers.end();
  return stage.judge(id, { counts: { succeeded: ITEMS - 1, failed: 1 } });
}

export const pullers = {
  'consumers that pull': (stage: Stage) => pulled(stage, 1),
  'consumers that pull, and what fails is tried again': (stage: Stage) => pulled(stage, 2),
};
