import {
  InvalidOptionError,
  type OptionTable,
  option,
  type RedisInput,
  type SharedConnection,
  shape,
  TIMES,
} from '@piecework/protocol';

export interface IdQueueOptions {
  /** Where Redis is, or a connection to share. A client that you pass in is never closed. */
  readonly redis: RedisInput | SharedConnection;
  /**
   * How long a consumer may work on an item, in ms, by the server's clock; after that the item is offered to others.
   * 1 to a year. Stored with the queue. @default that of the existing queue; 60000 for a new one
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Whether an id that is added again while it is pending or running stays one item. Stored with the queue.
   * @default that of the existing queue; false for a new one
   */
  readonly unique?: boolean | undefined;
  /**
   * After `after` answers `processing` in a row (1 to 1000000), each further `pull` waits `ms` (0 to 86400000) before
   * it asks the server, until an answer differs.
   * @default { after: 3, ms: 250 }
   */
  readonly rest?:
    | { readonly after?: number | undefined; readonly ms?: number | undefined }
    | undefined;
  /**
   * How long each call is repeated while Redis is unavailable (unreachable, full, loading, read-only …), in ms, before
   * it throws. 0: once. At most a day. @default 30000
   */
  readonly unavailableMs?: number | undefined;
}

/** `timeoutMs` of a new queue, unless `join` says otherwise. */
export const DEFAULT_TIMEOUT_MS = 60_000;
export const DEFAULT_REST = { after: 3, ms: 250 };

const rest = shape.exactly({
  after: shape.optional(shape.integer(1, 1_000_000)),
  ms: shape.optional(shape.integer(0, 86_400_000)),
});

export const idQueueOptions = {
  redis: option.custom(shape.given, 'where Redis is'),
  timeoutMs: option.ms(1, 31_536_000_000),
  unique: option.boolean(),
  rest: option.custom(
    rest,
    '{ after, ms }: whole numbers from 1 to 1000000, and from 0 to 86400000 (ms)',
    DEFAULT_REST,
  ),
  unavailableMs: option.ms(0, 86_400_000, TIMES.unavailableMs),
} satisfies OptionTable;

export const pullOptions: OptionTable = {
  signal: option.custom(shape.instance(AbortSignal), 'an AbortSignal'),
};

const ID_BYTES = 1_024;
const ID_ALLOWED = `text of 1 to ${ID_BYTES} bytes in UTF-8`;

/** @throws InvalidOptionError unless each is an id: text that UTF-8 can encode, so without lone surrogates */
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
