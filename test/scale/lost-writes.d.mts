import type { ChainableCommander, Redis } from 'ioredis';

export interface PutBack {
  (): Promise<unknown>;
  (by: ChainableCommander): ChainableCommander;
}

export function keepState(client: Redis): Promise<PutBack>;
