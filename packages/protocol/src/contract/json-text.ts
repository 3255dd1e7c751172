import { PayloadError } from './errors.js';

/** Makes a JsonText of text that is known to be JSON. */
export let knownJson: <Value = unknown>(text: string) => JsonText<Value>;

/**
 * A value as JSON text. `JSON.parse` and `JSON.stringify` do not give every text back: `3889108265204450030` becomes
 * 3889108265204450000, `1.10` becomes 1.1, and of a key that occurs twice only the last value stays. A payload or result
 * that is a JsonText is stored as this text, unchanged, and options named `jsonText` give payloads and results back as
 * JsonText. Within another value, for example as one field of an object, it becomes its `value`.
 */
export class JsonText<Value = unknown> {
  static {
    knownJson = (text) => new JsonText(text);
  }

  readonly text: string;

  private constructor(text: string) {
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

/** Node 20 has it, but not the types of ES2023. */
const isWellFormed = (text: string) =>
  (text as string & { isWellFormed(): boolean }).isWellFormed();

/**
 * Makes a payload or a result of JSON text, which is stored as it is.
 * @throws PayloadError when the text is not JSON
 */
export function jsonText<Value = unknown>(text: string): JsonText<Value> {
  // UTF-8 has no such characters: they would be stored as others.
  if (!isWellFormed(text))
    throw new PayloadError(
      'not JSON: it has half of a surrogate pair, which JSON text can have only as an escape',
    );
  try {
    JSON.parse(text);
  } catch (cause) {
    throw new PayloadError(`not JSON: ${(cause as Error).message}`, cause);
  }
  return knownJson(text);
}
