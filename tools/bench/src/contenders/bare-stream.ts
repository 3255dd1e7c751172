import { Redis } from 'ioredis';
import type { Contender, Session } from '../contender.js';
import type { Payload } from '../payloads.js';
import { deferred } from './deferred.js';

/**
 * The floor: a stream, filled and worked off by the barest commands in pipelines. No limit, no
 * counters, no results, no lease; nothing that a queue is for. How close one can come to it is the
 * question.
 */
type Freeing = 'XDEL' | 'XTRIM';
type Entry = [id: string, fields: string[]];
type Read = [stream: string, entries: Entry[]][] | null;

const ADD = 500;
const READ = 100;

function bareStream(freeing: Freeing): Contender {
  const freed = freeing === 'XDEL' ? '`XACK` + `XDEL`' : '`XACK` + `XTRIM MINID ~`';
  return {
    title: `bare commands, ${freeing}`,
    configuration: `\`XADD\` ${ADD} a pipeline; ${freed} and \`XREADGROUP COUNT ${READ}\` in one pipeline; no results`,

    async open({ host, port, queue: stream, handle }): Promise<Session> {
      const producer = new Redis({ host, port });
      const worker = new Redis({ host, port });
      const values: unknown[] = [];
      const ended = deferred();
      let expected = Number.POSITIVE_INFINITY;
      let closing = false;
      await producer.xgroup('CREATE', stream, 'workers', '0', 'MKSTREAM');

      /** One round trip a batch: the last one's entries are freed, the next ones read. */
      async function turn(done: string[]): Promise<string[]> {
        const pipeline = worker.pipeline();
        if (done.length > 0) {
          pipeline.xack(stream, 'workers', ...done);
          if (freeing === 'XDEL') pipeline.xdel(stream, ...done);
          else pipeline.xtrim(stream, 'MINID', '~', after(done.at(-1) as string));
        }
        const isLast = values.length === expected;
        if (!isLast) {
          const group = ['GROUP', 'workers', 'w1', 'COUNT', READ, 'BLOCK', 1_000] as const;
          pipeline.xreadgroup(...group, 'STREAMS', stream, '>');
        }
        const replies = (await pipeline.exec()) ?? [];
        for (const [error] of replies) if (error) throw error;
        if (isLast) {
          closing = true;
          ended.resolve();
          return [];
        }
        const entries = (replies.at(-1)?.[1] as Read)?.[0]?.[1] ?? [];
        const payloads = entries.map(([, fields]) => JSON.parse(fields[1] as string) as Payload);
        values.push(...(await Promise.all(payloads.map(handle))));
        return entries.map(([id]) => id);
      }

      async function serve(): Promise<void> {
        for (let done: string[] = []; !closing; ) done = await turn(done);
      }

      return {
        startWorker: async () => {
          await worker.ping();
          serve().catch((error) => {
            if (!closing) ended.reject(error);
          });
        },
        submit: async (payloads) => {
          expected = payloads.length;
          for (let from = 0; from < payloads.length; from += ADD) {
            const pipeline = producer.pipeline();
            for (const payload of payloads.slice(from, from + ADD)) {
              pipeline.xadd(stream, '*', 'p', JSON.stringify(payload));
            }
            await pipeline.exec();
          }
        },
        readResults: async (tally) => {
          await ended.promise;
          for (const value of values) tally.add(value);
        },
        close: async () => {
          closing = true;
          producer.disconnect();
          worker.disconnect();
        },
      };
    },
  };
}

/** The id just above, so that the trim frees the entry itself too. */
function after(id: string): string {
  const [ms, sequence] = id.split('-');
  return `${ms}-${Number(sequence) + 1}`;
}

export const bareXdel = bareStream('XDEL');
export const bareXtrim = bareStream('XTRIM');
