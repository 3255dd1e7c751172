import { encodeObject } from '@piecework/protocol';
import { stringify } from 'safe-stable-stringify';

/**
 * The one text of a JSON value, whatever the order of its fields: two values of equal content have the
 * same.
 * @throws PayloadError when it is not JSON, or larger than `maxBytes`
 */
export function canonical(value: unknown, maxBytes: number): string {
  return stringify(JSON.parse(encodeObject(value, maxBytes))) as string;
}
