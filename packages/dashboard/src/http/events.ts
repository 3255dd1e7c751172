import type { ServerResponse } from 'node:http';
import type { Chart } from '@piecework/views';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Listener, Rounds } from '../data/rounds.js';
import type { Sources } from '../data/sources.js';
import { viewerOf } from '../security/access.js';
import { answerOf } from '../security/refused.js';
import { parse, queryOf, queueParams, requestParams, searchParams, viewParams } from './params.js';
import { queueNamed } from './reads.js';
import { Shares } from './shares.js';

/** Most pages at one time: of one viewer, and of all. */
const MOST_STREAMS = 20;
const MOST_STREAMS_OF_ALL = 200;
/** Most searches of one viewer at one time: each costs some milliseconds a second. */
const MOST_SEARCHES = 5;
/** A stream ends after this time; the page opens the next, and is authorized again. */
const LONGEST_MS = 600_000;
const SIGN_OF_LIFE_MS = 15_000;
/** A reader that is so far behind is left out until it has caught up: the next value replaces the ones before. */
const BEHIND_BYTES = 1_000_000;

/** `GET events`: what a page looks at, by server-sent events, each a whole new value; of charts what is new. */
export function addEvents(instance: FastifyInstance, sources: Sources, rounds: Rounds): void {
  const streams = new Set<Stream>();
  const pages = new Shares(MOST_STREAMS, MOST_STREAMS_OF_ALL);
  const searches = new Shares(MOST_SEARCHES);
  // A HEAD would open a stream as well.
  instance.get('/api/events', { exposeHeadRoute: false }, (request, reply) => {
    const { key, read, chart, isSearch = false } = topicOf(request, sources);
    // The page has left while `authorize` was asked; nothing would say so again.
    if (reply.raw.destroyed) return void reply.hijack();
    const viewer = viewerOf(request);
    const freePage = pages.take(
      viewer,
      'You have too many pages of the dashboard open: close some, and this one continues.',
    );
    let freeSearch = () => {};
    try {
      if (isSearch)
        freeSearch = searches.take(
          viewer,
          'You search on too many pages: close some, and this one continues.',
        );
    } catch (error) {
      freePage();
      throw error;
    }
    reply.hijack();
    const stream = new Stream(reply.raw);
    streams.add(stream);
    const listener: Listener = {
      value: (json) => stream.send('view', json),
      chart: (news, whole) => stream.sendChart(news, whole),
      failed: (error) => {
        const { code, message, isNews } = answerOf(error);
        if (isNews) sources.onProblem(error, key.slice(0, 100));
        stream.send('problem', JSON.stringify({ code, message }));
      },
    };
    const leave = rounds.subscribe(key, read, listener, chart);
    stream.onEnd(() => {
      streams.delete(stream);
      freePage();
      // A search that has begun takes its time, even if its page is closed.
      void leave().then(freeSearch);
    });
  });
  instance.addHook('preClose', () => {
    for (const stream of streams) stream.close();
  });
}

class Stream {
  readonly #raw: ServerResponse;
  readonly #signOfLife: NodeJS.Timeout;
  readonly #end: NodeJS.Timeout;
  #missedPoints = false;

  constructor(raw: ServerResponse) {
    this.#raw = raw;
    raw.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      // Otherwise the connection stays open for a while when the stream has ended, and the server with it.
      connection: 'close',
      // Proxies would keep events until they are many.
      'x-accel-buffering': 'no',
    });
    raw.write('retry: 2000\n\n');
    // Its reader may be gone at any time.
    raw.on('error', () => {});
    this.#signOfLife = setInterval(() => this.#write(':\n\n'), SIGN_OF_LIFE_MS);
    this.#end = setTimeout(() => this.close(), LONGEST_MS);
  }

  /** @param json in one line */
  send(event: 'view' | 'problem' | 'chart', json: string): void {
    if (this.#isBehind) return;
    this.#write(`event: ${event}\ndata: ${json}\n\n`);
  }

  /** A reader that missed points gets all of them. */
  sendChart(news: string, whole: () => string): void {
    const isBehind = this.#isBehind;
    if (!isBehind) this.send('chart', this.#missedPoints ? whole() : news);
    this.#missedPoints = isBehind;
  }

  get #isBehind(): boolean {
    return this.#raw.writableLength > BEHIND_BYTES;
  }

  #write(text: string): void {
    if (!this.#raw.writableEnded && !this.#raw.destroyed) this.#raw.write(text);
  }

  onEnd(call: () => void): void {
    this.#raw.once('close', () => {
      clearInterval(this.#signOfLife);
      clearTimeout(this.#end);
      call();
    });
  }

  close(): void {
    this.#raw.end();
  }
}

/** What a page looks at. Equal questions have equal keys. */
function topicOf(
  request: FastifyRequest,
  sources: Sources,
): {
  readonly key: string;
  readonly read: () => Promise<unknown>;
  readonly chart?: () => Chart;
  readonly isSearch?: boolean;
} {
  const { view } = parse(viewParams, queryOf(request));
  if (view === 'beside') return { key: view, read: () => sources.beside().view() };
  const { queue } = parse(queueParams, queryOf(request));
  const source = queueNamed(sources, queue);
  const key = (...more: unknown[]) => JSON.stringify([view, queue, ...more]);
  if (view === 'overview')
    return { key: key(), read: () => source.overview(), chart: () => source.chart() };
  if (view === 'workers') return { key: key(), read: () => source.workers() };
  if (view === 'errors') return { key: key(), read: () => source.errors() };
  if (view === 'requests') {
    const query = parse(searchParams, queryOf(request));
    return { key: key(query), read: () => source.requests(query), isSearch: true };
  }
  const { id } = parse(requestParams, queryOf(request));
  const chart = () => source.closely(id).chart();
  return { key: key(id), read: () => source.request(id), chart };
}
