import { ServerError } from '../contract/errors.js';
import { redisError } from './redis-error.js';

/** Memory of a server, in bytes. `most`: its `maxmemory`; 0: no limit. */
export interface MemoryUse {
  readonly used: number;
  readonly most: number;
}

/** From this part of `maxmemory` on, workers read no more of requests whose results need room. */
export const TIGHT_MEMORY = 0.85;

/** One field of a reply to INFO. */
export function infoField(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
}

export const isLoading = (info: string): boolean => infoField(info, 'loading') === '1';

export const loadingError = () =>
  redisError(new Error('LOADING Redis is loading its data'), 'connect');

/** Whether a server with this maxmemory-policy keeps all keys that have no expiry: no key of unfinished work has one. */
export const keepsWork = (policy: string): boolean =>
  policy === 'noeviction' || policy.startsWith('volatile-');

/** @throws ServerError TOO_OLD, EVICTING when the server that sent this INFO cannot be used */
export function refuseUnfit(info: string): void {
  const version = infoField(info, 'redis_version') ?? '0';
  if (Number.parseInt(version, 10) < 7) {
    throw new ServerError(`Redis ${version} is too old: 7.0 or newer is needed`, {
      code: 'TOO_OLD',
    });
  }
  const policy = infoField(info, 'maxmemory_policy');
  if (policy && !keepsWork(policy) && infoField(info, 'maxmemory') !== '0') {
    throw new ServerError(
      `maxmemory-policy is ${policy}, which deletes work at random: set it to noeviction (where a rented server has this setting: docs/operations.md#eviction)`,
      { code: 'EVICTING' },
    );
  }
}

/** Memory use by what counts against `maxmemory`: buffers of replicas and of the append-only file do not. */
export function memoryIn(info: string): MemoryUse {
  const number = (name: string) => Number(infoField(info, name)) || 0;
  const used = number('used_memory') - number('mem_not_counted_for_evict');
  return { used, most: number('maxmemory') };
}
