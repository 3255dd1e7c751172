import { Redis } from 'ioredis';
import type { Contender, Session } from '../contender.js';
import type { Payload } from '../payloads.js';
import { deferred } from './deferred.js';

/**
 * The least that moves payloads to a worker and results to a reader through streams, and parses both: no limit, no
 * counters, no lease.
 */
type Entry = [id: string, fields: string[]];
type Read = [stream: string, entries: Entry[]][] | null;

const ADD = 500;
const READ = 100;

export const bareResults: Contender = {
  title: 'bare commands, with results',
  configuration: `\`XADD\` ${ADD} a pipeline; \`XADD\` of each result, \`XACK\`, \`XTRIM MINID ~\` and \`XREADGROUP COUNT ${READ}\` in one pipeline; results read by \`XREAD COUNT ${READ} BLOCK\``,

  async open({ host, port, queue, handle }): Promise<Session> {
    const [stream, results] = [`${queue}:sub`, `${queue}:results`];
    const [producer, worker, reader] = [1, 2, 3].map(() => new Redis({ host, port })) as [
      Redis,
      Redis,
      Redis,
    ];
    const failed = deferred<never>();
    let closing = false;
    await producer.xgroup('CREATE', stream, 'workers', '0', 'MKSTREAM');

    /** One round trip a batch: the results of the last one, and the entries of the next one. */
    async function turn(done: readonly Entry[], values: readonly unknown[]): Promise<Entry[]> {
      const pipeline = worker.pipeline();
      for (const value of values) pipeline.xadd(results, '*', 'r', JSON.stringify(value));
      const ids = done.map(([id]) => id);
      if (ids.length > 0) {
        pipeline.xack(stream, 'workers', ...ids);
        pipeline.xtrim(stream, 'MINID', '~', ids.at(-1) as string);
      }
      const group = ['GROUP', 'workers', 'w1', 'COUNT', READ, 'BLOCK', 1_000] as const;
      pipeline.xreadgroup(...group, 'STREAMS', stream, '>');
      const replies = (await pipeline.exec()) ?? [];
      for (const [error] of replies) if (error) throw error;
      return (replies.at(-1)?.[1] as Read)?.[0]?.[1] ?? [];
    }

    async function serve(): Promise<void> {
      let entries: Entry[] = [];
      while (!closing) {
        const values = await Promise.all(entries.map((entry) => handle(parsed(entry))));
        entries = await turn(entries, values);
      }
    }

    return {
      startWorker: async () => {
        await worker.ping();
        serve().catch((error) => {
          if (!closing) failed.reject(error);
        });
      },
      submit: async (payloads) => {
        for (let from = 0; from < payloads.length; from += ADD) {
          const pipeline = producer.pipeline();
          for (const payload of payloads.slice(from, from + ADD)) {
            pipeline.xadd(stream, '*', 'p', JSON.stringify(payload));
          }
          await pipeline.exec();
        }
      },
      readResults: async (tally) => {
        let last = '0';
        while (tally.count < tally.expected) {
          const read = reader.xread('COUNT', READ, 'BLOCK', 1_000, 'STREAMS', results, last);
          const entries = ((await Promise.race([read, failed.promise])) as Read)?.[0]?.[1] ?? [];
          for (const entry of entries) tally.add(parsed(entry));
          last = entries.at(-1)?.[0] ?? last;
        }
      },
      close: async () => {
        closing = true;
        for (const client of [producer, worker, reader]) client.disconnect();
      },
    };
  },
};

const parsed = ([, [, text = '']]: Entry) => JSON.parse(text) as Payload;
