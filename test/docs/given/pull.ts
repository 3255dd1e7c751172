import { Worker } from 'piecework';
import { redis } from './common.js';

export interface Stats {
  readonly bytes: number;
}

export const measure = async (_payload: unknown, _signal?: AbortSignal): Promise<Stats> => ({
  bytes: 1,
});
export { finalize, from, mergeMap } from 'rxjs';

export const worker = new Worker({ redis, queue: 'given' });
