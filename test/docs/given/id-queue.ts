import { hostname as nameOfHost } from 'node:os';
import { IdQueue } from 'piecework';
import { redis } from './common.js';

export const hostname = nameOfHost;
export const shrink = async (_id: string): Promise<void> => {};
export const queue = await IdQueue.join('given', { redis, timeoutMs: 60_000 });
await queue.add(['1', '2']);
