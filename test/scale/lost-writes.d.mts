import type { Redis } from 'ioredis';

export function keepState(client: Redis): Promise<() => Promise<unknown>>;
