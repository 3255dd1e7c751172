import { emptiedIn } from './emptied.js';
import { PayloadError } from './errors.js';
import { JsonText, knownJson } from './json-text.js';
import type { KeptError } from './kept-error.js';
import { readThrown } from './thrown.js';

/**
 * Payloads and results are sent as JSON text, which the scripts do not parse. A result `undefined` is the empty text;
 * a payload `undefined` is refused, because a sub-request without content is a mistake. A value that is JSON text already
 * (`JsonText`) is sent as it is.
 */

/** Default of `maxPayloadBytes`: 1 MiB for one payload or result, encoded. */
export const MAX_PAYLOAD_BYTES = 1_048_576;

/**
 * The highest value of `maxPayloadBytes` and `maxResultBytes`: 256 MiB. Redis refuses a text of more than 512 MB and
 * closes the connection, and Node cannot build a string of that length with the command around it. A result that cannot
 * be sent would keep its request from ever completing.
 */
export const LARGEST_VALUE_BYTES = 268_435_456;

/** The option that sets the size limit of each kind of value. */
const BOUNDS: Readonly<Record<string, string>> = {
  payload: ' (maxPayloadBytes)',
  object: ' (maxObjectBytes)',
  result: ' (maxResultBytes, --max-result-bytes)',
};

function encode(value: unknown, what: string, maxBytes: number, index?: number): string {
  let text: string | undefined;
  let emptied: string | undefined;
  try {
    text = value instanceof JsonText ? value.text : JSON.stringify(value);
    if (text !== undefined) emptied = emptiedIn(value);
  } catch (cause) {
    const { message } = readThrown(cause);
    throw new PayloadError(`${what} cannot be encoded as JSON: ${message}`, cause, index);
  }
  if (text === undefined) {
    const message = `${what} cannot be encoded as JSON: it is ${value === undefined ? 'undefined' : `a ${typeof value}`}`;
    throw new PayloadError(message, undefined, index);
  }
  if (emptied !== undefined)
    throw new PayloadError(`${what} cannot be encoded as JSON: ${emptied}`, undefined, index);
  // A UTF-16 unit is at most 3 bytes of UTF-8, so most texts need no count.
  if (text.length * 3 > maxBytes) {
    const bytes = Buffer.byteLength(text);
    if (bytes > maxBytes) {
      const message = `${what} has ${bytes} bytes; allowed: ${maxBytes}${BOUNDS[what] ?? ''}`;
      throw new PayloadError(message, undefined, index);
    }
  }
  return text;
}

/**
 * Encodes the payload of a sub-request. `index`: its place among the given items, for the error.
 * @throws PayloadError when it is not JSON, when JSON would silently drop a value in it, or when it is larger than
 *   `maxBytes`
 */
export function encodePayload(
  value: unknown,
  maxBytes = MAX_PAYLOAD_BYTES,
  index?: number,
): string {
  return encode(value, 'payload', maxBytes, index);
}

/** Encodes an object of a `Scheduler`. @throws PayloadError as `encodePayload` */
export function encodeObject(value: unknown, maxBytes: number): string {
  return encode(value, 'object', maxBytes);
}

/**
 * Encodes the result of a handler.
 * @throws PayloadError when it is not JSON, when JSON would silently drop a value in it, or when it is larger than
 *   `maxBytes`
 */
export function encodeResult(value: unknown, maxBytes = MAX_PAYLOAD_BYTES): string {
  return value === undefined ? '' : encode(value, 'result', maxBytes);
}

/** Most bytes of one checkpoint, encoded. */
export const MAX_CHECKPOINT_BYTES = 8_192;

/**
 * Encodes what a handler gives to its next attempt.
 * @throws PayloadError when it is not JSON or larger than MAX_CHECKPOINT_BYTES.
 */
export function encodeCheckpoint(value: unknown): string {
  return encode(value, 'checkpoint', MAX_CHECKPOINT_BYTES);
}

/** Decodes a payload, result or checkpoint. `jsonText`: keeps it as the text that it is. */
export function decode(text: string, jsonText = false): unknown {
  if (text === '') return undefined;
  return jsonText ? knownJson(text) : JSON.parse(text);
}

/** When, where and for how long the attempt that settled a sub-request ran. */
export interface Timing {
  /** By the clock of the worker's machine, in ms since 1970. */
  readonly startedAt: number;
  readonly durationMs: number;
  /** Which attempt it was, from 1. */
  readonly attempt: number;
  /** Boot id of its worker: `<host>-<process id>-<random>`. */
  readonly worker: string;
}

/** Marks a result that has a timing before it. No JSON begins with this character. */
const TIMED = '@';

/** A result with its timing before it, so that the timing needs no write of its own. */
export function withTiming(result: string, timing: Timing): string {
  return `${TIMED}${JSON.stringify(timing)}\n${result}`;
}

/** Decodes a result, and its timing if it has one. */
export function decodeResult(text: string, jsonText = false): { value: unknown; timing?: Timing } {
  if (!text.startsWith(TIMED)) return { value: decode(text, jsonText) };
  const end = text.indexOf('\n');
  const timing = JSON.parse(text.slice(TIMED.length, end)) as Timing;
  return { value: decode(text.slice(end + 1), jsonText), timing };
}

/** Encodes any value that a handler threw: name, message, code and stack, each cut to a length. Never throws. */
export function encodeError(thrown: unknown, timing?: Timing): string {
  return JSON.stringify({ ...readThrown(thrown), timing });
}

/** Decodes an error, and the timing of the failed attempt if there is one. */
export function decodeFailure(text: string): { error: KeptError; timing?: Timing } {
  const { timing, ...error } = JSON.parse(text) as KeptError & { timing?: Timing };
  return timing ? { error, timing } : { error };
}

export function decodeError(text: string): KeptError {
  return decodeFailure(text).error;
}
