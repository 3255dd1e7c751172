import { checkOption, isOrdinary, option, type TraceContext } from '@piecework/protocol';
import { optionsDigest } from './digest.js';
import { LastUsed } from './last-used.js';
import {
  type CheckedOptions,
  checkRequestOptions,
  type RequestOptions,
  requestOptions,
} from './options.js';

/** The options of submissions, checked, and their digest. */
interface Shared {
  readonly options: CheckedOptions;
  readonly digest: string;
}

/** The options of one submission. */
export interface Prepared extends Shared {
  readonly id: string | undefined;
}

/**
 * Checks the options of submissions to one queue. Most submissions of a process differ only in their id: then the check
 * and the digest are those of the one before, the same objects.
 */
export class PreparedOptions {
  readonly #queue: string;
  readonly #last = new LastUsed<Shared>();

  constructor(queue: string) {
    this.#queue = queue;
  }

  /** @throws InvalidOptionError */
  of(given: RequestOptions, trace: TraceContext | undefined): Prepared {
    // The trace of a sampled submission is its own.
    const usual = typeof trace === 'object' ? undefined : usualOptions(given);
    if (!usual) {
      const { id, ...checked } = checkRequestOptions(given);
      return { id, ...this.#prepare(checked, trace) };
    }
    const { id, text, copy } = usual;
    if (id !== undefined) checkOption('id', id, ID);
    const make = () => this.#prepare(checkRequestOptions(copy), trace);
    return { id, ...this.#last.get(`${trace ?? ''} ${text}`, make) };
  }

  #prepare(checked: CheckedOptions, trace: TraceContext | undefined): Shared {
    const options = trace === undefined ? checked : { ...checked, trace };
    return { options, digest: optionsDigest(this.#queue, options) };
  }
}

const ID = option.name();
/** Objects that are the same for many submissions. */
const SHARED = ['backoff', 'toleratedFailures'];

interface UsualOptions {
  readonly id: string | undefined;
  /** Without the id. Two with the same text are allowed or refused alike, and mean the same. */
  readonly text: string;
  /** What the text says, which nobody changes. */
  readonly copy: RequestOptions;
}

/**
 * Options that many submissions may have. Undefined for what has to be looked at each time: other objects, such as a
 * signal or a key of deduplication, which excludes an id; what is no option; a wrong value that is an object.
 */
function usualOptions(given: RequestOptions): UsualOptions | undefined {
  try {
    if (!isOrdinary(given)) return undefined;
    const copy: Record<string, unknown> = {};
    let [id, text]: [unknown, string] = [undefined, ''];
    for (const name of Object.keys(given)) {
      if (!Object.hasOwn(requestOptions, name)) return undefined;
      const value = given[name];
      if (name === 'id') id = value;
      else if (value !== undefined) {
        const known = isPlain(value) ? `${typeof value} ${value}` : textOfShared(name, value);
        if (known === undefined) return undefined;
        copy[name] = isPlain(value) ? value : JSON.parse(known);
        text += `${name} ${known.length} ${known} `;
      }
    }
    return { id: id as string | undefined, text, copy };
  } catch {
    return undefined;
  }
}

/** The type goes with it into the text: 1 and '1' differ. */
const isPlain = (value: unknown): value is string | number | boolean =>
  ['string', 'number', 'boolean'].includes(typeof value);

const textOfShared = (name: string, value: unknown): string | undefined =>
  SHARED.includes(name) && isOrdinary(value) && requestOptions[name]?.fits(value)
    ? JSON.stringify(value)
    : undefined;
