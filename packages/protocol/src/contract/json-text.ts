import { PayloadError } from './errors.js';

/**
 * A value as JSON text. `JSON.parse` and `JSON.stringify` do not give every text back: `3889108265204450030` becomes
 * 3889108265204450000, `1.10` becomes 1.1, and of a key that occurs twice only the last value stays. A payload or result
 * that is a JsonText is stored as this text, unchanged, and options named `jsonText` give payloads and results back as
 * JsonText. Within another value, for example as one field of an object, it becomes its `value`.
 */
export class JsonText<Value = unknown> {
  readonly text: string;

  /** @internal The text has to be JSON: `jsonText` checks that. */
  constructor(text: string) {
    this.text = text;
  }

  /** What `JSON.parse` makes of the text; parsed at each access. */
  get value(): Value {
    return JSON.parse(this.text) as Value;
  }

  toJSON(): Value {
    return this.value;
  }
}

/**
 * Makes a payload or a result of JSON text, which is stored as it is.
 * @throws PayloadError when the text is not JSON
 */
export function jsonText<Value = unknown>(text: string): JsonText<Value> {
  try {
    JSON.parse(text);
  } catch (cause) {
    throw new PayloadError(`not JSON: ${(cause as Error).message}`, cause);
  }
  return new JsonText(text);
}
