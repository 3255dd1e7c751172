import { Addresses, Beside, type OnProblem, Privacy, QueueSource, seldom } from '@piecework/views';
import { type DashboardOptions, DEFAULT_QUEUES } from '../shape/options.js';

/** What is read, queue by queue. A queue is connected to when a page first shows it. */
export class Sources {
  readonly queues: readonly string[];
  readonly privacy: Privacy;
  readonly onProblem: OnProblem;
  readonly #options: DashboardOptions;
  readonly #addresses = new Addresses();
  readonly #open = new Map<string, QueueSource>();
  #beside: Beside | undefined;

  constructor(options: DashboardOptions, log: OnProblem) {
    this.#options = options;
    this.privacy = new Privacy(options);
    this.onProblem = seldom(log);
    this.queues = this.#named.map(({ name }) => name);
  }

  get #named() {
    return this.#options.queues ?? DEFAULT_QUEUES;
  }

  get hasBeside(): boolean {
    return Object.values(this.#options.beside ?? {}).some((names = []) => names.length > 0);
  }

  /** undefined: this dashboard does not show this queue. */
  queue(name: string): QueueSource | undefined {
    const known = this.#open.get(name);
    if (known) return known;
    const named = this.#named.find((one) => one.name === name);
    if (!named) return undefined;
    const { redis } = this.#options;
    const source = new QueueSource(redis, named, this.privacy, this.#addresses, this.onProblem);
    this.#open.set(name, source);
    return source;
  }

  beside(): Beside {
    const { redis, beside = {} } = this.#options;
    this.#beside ??= new Beside(redis, beside, this.privacy, this.onProblem);
    return this.#beside;
  }

  /** Nobody looks at anything. */
  rest(): void {
    for (const source of this.#open.values()) source.rest();
  }

  async close(): Promise<void> {
    const ends = [...this.#open.values()].map((source) => source.close());
    await Promise.all([...ends, this.#beside?.close()]);
  }
}
