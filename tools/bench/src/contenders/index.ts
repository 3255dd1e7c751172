import type { Contender } from '../contender.js';
import { bareResults } from './bare-results.js';
import { bareXdel, bareXtrim } from './bare-stream.js';
import { beeQueue } from './bee-queue.js';
import { bullmqBulk } from './bullmq-bulk.js';
import { bullmqFlow } from './bullmq-flow.js';
import { firstPublished } from './first-published.js';
import { piecework, pieceworkDiscard, pieceworkMetrics } from './piecework.js';

/** In the order of the tables, `bare-results` only in figures; the first is what the others are compared with. */
export const contenders = {
  piecework,
  'piecework-discard': pieceworkDiscard,
  'piecework-metrics': pieceworkMetrics,
  'bullmq-flow': bullmqFlow,
  'bullmq-bulk': bullmqBulk,
  'bee-queue': beeQueue,
  'first-published': firstPublished,
  'bare-xdel': bareXdel,
  'bare-xtrim': bareXtrim,
  'bare-results': bareResults,
} satisfies Record<string, Contender>;

export type ContenderName = keyof typeof contenders;

/** Those that the table of rates may have. */
export const contenderNames = (Object.keys(contenders) as ContenderName[]).filter(
  (name) => name !== 'bare-results',
);

/** Those that it has unless others are named: what metrics cost is asked for by `--only piecework piecework-metrics`. */
export const usualNames = contenderNames.filter((name) => name !== 'piecework-metrics');
