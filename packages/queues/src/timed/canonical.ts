import { encodeObject } from '@piecework/protocol';
import { stringify } from 'safe-stable-stringify';

/**
 * The canonical text of a JSON value: values of equal content have the same text, whatever the order of their fields.
 * @throws PayloadError when the value is not JSON, or larger than `maxBytes`
 */
export function canonical(value: unknown, maxBytes: number): string {
  return stringify(JSON.parse(encodeObject(value, maxBytes))) as string;
}
