import type { HandlerContext } from '@piecework/worker';
import type { Stage } from './stage.js';

/** Handlers that run until they are told to end, or are aborted. */
export class Gates {
  readonly #stage: Stage;
  readonly #running = new Map<number, () => void>();
  readonly #open = new Set<number>();
  #allOpen = false;
  #aborted = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  readonly handler = async (payload: unknown, context: HandlerContext) => {
    const { index, signal } = context;
    const result = this.#stage.handler(payload, context);
    result.catch(() => {});
    if (!this.#allOpen && !this.#open.has(index) && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#running.set(index, resolve);
        signal.addEventListener('abort', () => resolve());
      });
      this.#running.delete(index);
    }
    if (signal.aborted) this.#aborted += 1;
    signal.throwIfAborted();
    return result;
  };

  /** Indexes that run now. */
  get running(): number[] {
    return [...this.#running.keys()];
  }

  /** How many were aborted. */
  get aborted(): number {
    return this.#aborted;
  }

  /** These end, now or when they begin. */
  open(...indexes: number[]): void {
    for (const index of indexes) {
      this.#open.add(index);
      this.#running.get(index)?.();
    }
  }

  openAll(): void {
    this.#allOpen = true;
    this.open(...this.running);
  }
}
