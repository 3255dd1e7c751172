import { checkOption, isOrdinary, option, type TraceContext } from '@piecework/protocol';
import { optionsDigest } from './digest.js';
import { LastUsed } from './last-used.js';
import {
  type CheckedOptions,
  checkRequestOptions,
  type RequestOptions,
  requestOptions,
} from './options.js';

/** The options of a submission, checked, and their digest. */
export interface Prepared {
  readonly options: CheckedOptions;
  readonly digest: string;
}

/**
 * Checks the options of submissions to one queue. Most submissions of a process differ only in their id: then the check
 * and the digest are those of the one before, the same objects.
 */
export class PreparedOptions {
  readonly #queue: string;
  readonly #last = new LastUsed<Prepared>();

  constructor(queue: string) {
    this.#queue = queue;
  }

  /** @throws InvalidOptionError */
  of(options: RequestOptions, trace: TraceContext | undefined): Prepared {
    const text = trace === undefined ? textOf(options) : undefined;
    if (text === undefined) return this.#prepare(options, trace);
    if (options.id !== undefined) checkOption('id', options.id, ID);
    // A copy: the caller may change the objects in it later.
    return this.#last.get(text, () => this.#prepare(structuredClone(options), undefined));
  }

  #prepare(given: RequestOptions, trace: TraceContext | undefined): Prepared {
    const checked = checkRequestOptions(given);
    const options = trace === undefined ? checked : { ...checked, trace };
    return { options, digest: optionsDigest(this.#queue, options) };
  }
}

const ID = option.name();
const specs = new Map(Object.entries(requestOptions));
/** Objects that are the same for many submissions. */
const SHARED = ['backoff', 'toleratedFailures'];

/**
 * The options without the id, as a text: two objects with the same text are allowed or refused alike, and mean the
 * same. Undefined for what has to be looked at each time: other objects, such as a signal or a key of deduplication,
 * which excludes an id; what is no option; a wrong value that is an object.
 */
function textOf(options: RequestOptions): string | undefined {
  try {
    if (!isOrdinary(options)) return undefined;
    let text = '';
    for (const name of Object.keys(options)) {
      const spec = specs.get(name);
      if (!spec) return undefined;
      const value = options[name];
      if (name === 'id' || value === undefined) continue;
      const known = isPlain(value)
        ? `${typeof value} ${value}`
        : SHARED.includes(name) && spec.fits(value) && JSON.stringify(value);
      if (typeof known !== 'string') return undefined;
      text += `${name} ${known.length} ${known} `;
    }
    return text;
  } catch {
    return undefined;
  }
}

/** The type goes with it into the text: 1 and '1' differ. */
const isPlain = (value: unknown): value is string | number | boolean =>
  ['string', 'number', 'boolean'].includes(typeof value);
