import { RetryQueue } from 'piecework';
import { redis } from './common.js';

export interface Mail {
  readonly to: string;
}

export const mail: Mail = { to: 'me' };
export const send = async (_mail: Mail, _signal: AbortSignal): Promise<void> => {};
export const queue = new RetryQueue<Mail>({ redis, name: 'given' });
await queue.put(mail);
