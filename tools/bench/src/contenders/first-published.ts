import { Redis, type Result } from 'ioredis';
import type { Contender, Session } from '../contender.js';
import type { Payload } from '../payloads.js';
import type { Tally } from '../tally.js';
import { deferred } from './deferred.js';

/**
 * The splitting queue in its first form, before it had permits, leases or results: a stream and a
 * counter per request, one script that fills them and one that pushes as many tokens as the limit.
 * A worker that pops a token reads one entry, runs it, lets a script count it, and pushes the token back.
 */
const SCRIPTS = {
  // KEYS: stream, counter. ARGV: payloads.
  fill: `
    redis.call('XGROUP', 'CREATE', KEYS[1], 'workers', '0', 'MKSTREAM')
    for i = 1, #ARGV do redis.call('XADD', KEYS[1], '*', 'p', ARGV[i]) end
    redis.call('SET', KEYS[2], #ARGV)`,
  // KEYS: priority list. ARGV: token, how many.
  push: `for i = 1, tonumber(ARGV[2]) do redis.call('LPUSH', KEYS[1], ARGV[1]) end`,
  // KEYS: stream, counter. ARGV: entry, channel. Reply: how many are left.
  count: `
    redis.call('XACK', KEYS[1], 'workers', ARGV[1])
    local left = redis.call('DECR', KEYS[2])
    if left == 0 then
      redis.call('DEL', KEYS[1], KEYS[2])
      redis.call('PUBLISH', ARGV[2], 'complete')
    end
    return left`,
};

interface Scripted extends Redis {
  fill(stream: string, counter: string, ...payloads: string[]): Result<null, never>;
  push(list: string, token: string, count: number): Result<null, never>;
  count(stream: string, counter: string, entry: string, channel: string): Result<number, never>;
}

type Popped = [list: string, token: string] | null;
type Read = [stream: string, entries: [id: string, fields: string[]][]][] | null;

const PRIORITIES = 100;
const DEFAULT_PRIORITY = 50;

export const firstPublished: Contender = {
  title: 'splitting queue as first published',
  configuration: `two submit scripts; \`BRPOP\` over ${PRIORITIES} lists, \`XREADGROUP COUNT 1\`, a counting script, \`LPUSH\`; tokens = limit = concurrency; keeps no results: the worker’s return values are counted`,

  async open({ host, port, queue, concurrency, handle }): Promise<Session> {
    const client = new Redis({ host, port }) as unknown as Scripted;
    client.defineCommand('fill', { numberOfKeys: 2, lua: SCRIPTS.fill });
    client.defineCommand('push', { numberOfKeys: 1, lua: SCRIPTS.push });
    client.defineCommand('count', { numberOfKeys: 2, lua: SCRIPTS.count });
    const blocking = new Redis({ host, port });
    const notices = new Redis({ host, port });
    const id = `${queue}:request`;
    const stream = `sub:{${id}}`;
    const counter = `left:{${id}}`;
    const lists = Array.from({ length: PRIORITIES }, (_, i) => `{${queue}}:${i}`);
    const values: unknown[] = [];
    const complete = deferred();
    let closing = false;

    async function runOne(list: string, token: string): Promise<void> {
      const read = await client.xreadgroup(
        ...(['GROUP', 'workers', 'w1', 'COUNT', 1, 'STREAMS', stream, '>'] as const),
      );
      const entry = (read as Read)?.[0]?.[1][0];
      // All entries are handed out: the token is dropped.
      if (entry === undefined) return;
      values.push(await handle(JSON.parse(entry[1][1] as string) as Payload));
      const left = await client.count(stream, counter, entry[0], id);
      if (left > 0) await client.lpush(list, token);
    }

    /** A slot's token may come back when the stream is gone: that was the last of the work. */
    const afterEnd = (error: unknown) => {
      if (!String(error).includes('NOGROUP')) complete.reject(error);
    };

    async function serve(): Promise<void> {
      while (!closing) {
        const popped = (await blocking.brpop(...lists, 5)) as Popped;
        if (popped) runOne(...popped).catch(afterEnd);
      }
    }

    await notices.subscribe(id);
    notices.on('message', () => complete.resolve());
    return {
      startWorker: async () => {
        await blocking.ping();
        serve().catch((error) => {
          if (!closing) complete.reject(error);
        });
      },
      submit: async (payloads) => {
        await client.fill(stream, counter, ...payloads.map((payload) => JSON.stringify(payload)));
        const tokens = Math.min(concurrency, payloads.length);
        await client.push(lists[DEFAULT_PRIORITY] as string, id, tokens);
      },
      readResults: async (tally: Tally) => {
        await complete.promise;
        for (const value of values) tally.add(value);
      },
      close: async () => {
        closing = true;
        for (const each of [client, blocking, notices]) each.disconnect();
      },
    };
  },
};
