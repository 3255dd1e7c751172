import {
  type Connection,
  InvalidOptionError,
  type OptionTable,
  option,
  type RedisInput,
  TIMES,
} from '@piecework/protocol';
import { z } from 'zod';

export interface IdQueueOptions {
  /** Where Redis is, or a connection that is shared. A client that is passed in is never closed. */
  readonly redis: RedisInput | Connection;
  /**
   * How long a task may be in one hand, in ms, by the server's clock; then others are offered it. Between 1
   * and a year. Kept with the queue. @default that of the queue that is there; 60000 for a new one
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Whether the same id, put twice, is one task while it is pending or running. Kept with the queue.
   * @default that of the queue that is there; false for a new one
   */
  readonly unique?: boolean | undefined;
  /**
   * When the answers of `pull` were PROCESSING `after` times in a row (1 to 1000000), each further `pull`
   * rests `ms` before it asks (0 to 86400000), until there is another answer.
   * @default { after: 3, ms: 250 }
   */
  readonly rest?:
    | { readonly after?: number | undefined; readonly ms?: number | undefined }
    | undefined;
  /**
   * How long each call goes on trying while Redis is unreachable, full, loading, read-only …, in ms,
   * before it throws; 0: not at all. At most a day. @default 30000
   */
  readonly unavailableMs?: number | undefined;
}

/** `timeoutMs` of a queue that is created without. */
export const DEFAULT_TIMEOUT_MS = 60_000;
export const DEFAULT_REST = { after: 3, ms: 250 };

const rest = z.strictObject({
  after: z.number().int().min(1).max(1_000_000).optional(),
  ms: z.number().int().min(0).max(86_400_000).optional(),
});

export const idQueueOptions: OptionTable = {
  redis: option.custom(
    z.any().refine((v) => v !== undefined && v !== null),
    'where Redis is',
  ),
  timeoutMs: option.ms(1, 31_536_000_000),
  unique: option.boolean(),
  rest: option.custom(
    rest,
    '{ after, ms }: whole numbers from 1 to 1000000, and from 0 to 86400000 (ms)',
    DEFAULT_REST,
  ),
  unavailableMs: option.ms(0, 86_400_000, TIMES.unavailableMs),
};

export const pullOptions: OptionTable = {
  signal: option.custom(z.instanceof(AbortSignal), 'an AbortSignal'),
};

const ID_BYTES = 1_024;
const ID_ALLOWED = `text of 1 to ${ID_BYTES} bytes in UTF-8`;

/** @throws InvalidOptionError unless each is an id: any text that UTF-8 can carry, so no lone surrogate */
export function checkIds(ids: readonly unknown[], named: (i: number) => string): void {
  for (const [i, id] of ids.entries()) {
    const isText = typeof id === 'string' && id !== '' && !/\p{Surrogate}/u.test(id);
    if (!isText || (id.length > ID_BYTES / 3 && Buffer.byteLength(id) > ID_BYTES))
      throw new InvalidOptionError(named(i), id, ID_ALLOWED);
  }
}

const KEY = /^([1-9]\d{0,14})-([1-9]\d{0,8})$/;

/** @throws InvalidOptionError */
export function parseKey(key: unknown): { number: number; attempt: number } {
  const parts = typeof key === 'string' ? KEY.exec(key) : null;
  if (!parts)
    throw new InvalidOptionError('key', key, 'the key of a reference, <number>-<attempt>');
  return { number: Number(parts[1]), attempt: Number(parts[2]) };
}
