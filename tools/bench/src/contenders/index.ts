import type { Contender } from '../contender.js';
import { bareXdel, bareXtrim } from './bare-stream.js';
import { beeQueue } from './bee-queue.js';
import { bullmqBulk } from './bullmq-bulk.js';
import { bullmqFlow } from './bullmq-flow.js';
import { firstPublished } from './first-published.js';
import { piecework, pieceworkDiscard } from './piecework.js';

/** In the order of the tables; the first is what the others are compared with. */
export const contenders = {
  piecework,
  'piecework-discard': pieceworkDiscard,
  'bullmq-flow': bullmqFlow,
  'bullmq-bulk': bullmqBulk,
  'bee-queue': beeQueue,
  'first-published': firstPublished,
  'bare-xdel': bareXdel,
  'bare-xtrim': bareXtrim,
} satisfies Record<string, Contender>;

export type ContenderName = keyof typeof contenders;
export const contenderNames = Object.keys(contenders) as ContenderName[];
