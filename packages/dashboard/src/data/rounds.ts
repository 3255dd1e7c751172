import { type Chart, ROUND_MS } from '@piecework/views';
import { ChartNews } from './chart-news.js';

/** What pages look at. Pages that look at the same have one topic. */
interface Topic {
  readonly read: () => Promise<unknown>;
  readonly chart: ChartNews | undefined;
  readonly listeners: Set<Listener>;
  last: string | undefined;
  reading: Promise<void> | undefined;
}

export interface Listener {
  /** A new value, as JSON. */
  value(json: string): void;
  /** Points of its chart that are new, and all of them for a reader that missed some. */
  chart?(news: string, whole: () => string): void;
  /** It could not be read. */
  failed(error: unknown): void;
}

/** What was read stays in memory for this time after the last page was closed: somebody may only reload. */
const REST_AFTER_MS = 60_000;

/**
 * Reads what pages look at, once a round, however many pages there are. Without pages there are no rounds. A round
 * begins a second after the one before began, and never before that has ended.
 */
export class Rounds {
  readonly #topics = new Map<string, Topic>();
  readonly #onRest: () => void;
  #timer: NodeJS.Timeout | undefined;
  #resting: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(onRest: () => void) {
    this.#onRest = onRest;
  }

  /**
   * @param chart what `read` has read of the chart of the view, if it has one.
   * @returns ends it; resolves when nothing is read for it any more
   */
  subscribe(
    key: string,
    read: () => Promise<unknown>,
    listener: Listener,
    chart?: () => Chart,
  ): () => Promise<void> {
    clearTimeout(this.#resting);
    const topic = this.#topics.get(key) ?? {
      read,
      chart: chart && new ChartNews(chart),
      listeners: new Set(),
      last: undefined,
      reading: undefined,
    };
    this.#topics.set(key, topic);
    topic.listeners.add(listener);
    if (topic.last !== undefined) {
      const { chart } = topic;
      if (chart) listener.chart?.(chart.whole(), () => chart.whole());
      listener.value(topic.last);
    }
    // Its parts are read at most once a round, so the first value need not wait for the round.
    else void readTopic(topic);
    this.#timer ??= setTimeout(() => void this.#round(), ROUND_MS);
    return async () => {
      topic.listeners.delete(listener);
      if (topic.listeners.size === 0 && this.#topics.get(key) === topic) this.#topics.delete(key);
      if (this.#topics.size === 0) this.#rest();
      await topic.reading;
    };
  }

  async #round(): Promise<void> {
    const begun = performance.now();
    await Promise.all([...this.#topics.values()].map(readTopic));
    this.#timer = undefined;
    if (this.#topics.size === 0 || this.#isClosed) return;
    const passed = performance.now() - begun;
    this.#timer = setTimeout(() => void this.#round(), Math.max(50, ROUND_MS - passed));
  }

  #rest(): void {
    clearTimeout(this.#resting);
    this.#resting = setTimeout(this.#onRest, REST_AFTER_MS);
    this.#resting.unref();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#resting);
    this.#topics.clear();
  }
}

function readTopic(topic: Topic): Promise<void> {
  topic.reading ??= readNow(topic).finally(() => {
    topic.reading = undefined;
  });
  return topic.reading;
}

async function readNow(topic: Topic): Promise<void> {
  try {
    const json = JSON.stringify(await topic.read());
    const { chart } = topic;
    const news = chart?.next();
    if (chart && news !== undefined)
      for (const listener of topic.listeners) listener.chart?.(news, () => chart.whole());
    if (json === topic.last) return;
    topic.last = json;
    for (const listener of topic.listeners) listener.value(json);
  } catch (error) {
    topic.last = undefined;
    for (const listener of topic.listeners) listener.failed(error);
  }
}
