import type { ValueView } from '../shape/views.js';

/** What `mask` is called with, besides the value. */
export interface Masked {
  readonly kind: 'payload' | 'result' | 'metadata' | 'error';
  readonly queue: string;
  readonly requestId: string;
  readonly task: string;
}

/** What of the values of users is shown. */
export interface PrivacyOptions {
  /** Whether payloads and results may be shown, behind a click. Otherwise they never reach the page. @default false */
  readonly showPayloads?: boolean | undefined;
  /**
   * Replaces each value of a user before it is shown or searched: payloads, results, metadata, and messages and stacks
   * of errors. If it throws, or returns a promise, the value is hidden. @default shows them as they are
   */
  readonly mask?: ((value: unknown, about: Masked) => unknown) | undefined;
}

/** Most characters of texts that reach the page. */
const LONGEST = { line: 2_000, stack: 16_384, value: 65_536, metadata: 2_048 };

/** What of the values of users reaches the page. All that does is text; the page shows it as text. */
export class Privacy {
  readonly #mask: PrivacyOptions['mask'];
  readonly shows: boolean;

  constructor({ mask, showPayloads = false }: PrivacyOptions) {
    this.#mask = mask;
    this.shows = showPayloads;
  }

  /** A payload or a result: its kind and size, and its text if payloads may be shown. */
  value(value: unknown, about: Masked): ValueView {
    const text = jsonOf(value);
    const described = describe(value, text);
    if (!this.shows) return { hidden: true, text: '', about: described, cut: false };
    const shown = jsonOf(this.#masked(value, about), 2);
    return {
      hidden: false,
      text: shown.slice(0, LONGEST.value),
      about: described,
      cut: shown.length > LONGEST.value,
    };
  }

  /** Metadata are shown, searched, and short. */
  metadata(value: unknown, about: Omit<Masked, 'kind'>): string {
    if (value === undefined || value === null) return '';
    return cut(jsonOf(this.#masked(value, { ...about, kind: 'metadata' })), LONGEST.metadata);
  }

  message(text: string, about: Omit<Masked, 'kind'>): string {
    return cut(String(this.#masked(text, { ...about, kind: 'error' })), LONGEST.line);
  }

  stack(text: string, about: Omit<Masked, 'kind'>): string {
    return cut(String(this.#masked(text, { ...about, kind: 'error' })), LONGEST.stack);
  }

  #masked(value: unknown, about: Masked): unknown {
    if (!this.#mask) return value;
    try {
      const masked = this.#mask(value, about);
      const { then } = (masked ?? {}) as { then?: unknown };
      if (typeof then !== 'function') return masked;
      Promise.resolve(masked).catch(() => {});
      return '(hidden: the mask function answered with a promise)';
    } catch {
      return '(hidden: the mask function failed)';
    }
  }
}

export function cut(text: string, most: number = LONGEST.line): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

function jsonOf(value: unknown, indent?: number): string {
  try {
    return JSON.stringify(value, undefined, indent) ?? String(value);
  } catch {
    return typeof value === 'object' ? '(too deeply nested to be shown)' : String(value);
  }
}

function describe(value: unknown, text: string): string {
  const bytes = `${Buffer.byteLength(text).toLocaleString('en')} bytes`;
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) return `list of ${value.length}, ${bytes}`;
  if (value === null || typeof value !== 'object')
    return `${value === null ? 'null' : typeof value}, ${bytes}`;
  const fields = Object.keys(value).length;
  return `object with ${fields} ${fields === 1 ? 'field' : 'fields'}, ${bytes}`;
}

const ADDRESS =
  /\b(?:redis|valkey)s?(?:-sentinel)?:\/\/\S+|\[[0-9a-f:.]+\](?::\d+)?|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|(?<![\w.-])(?!\d{4}-\d\d-\d\dT)(?=[\w.-]*[a-z])[\w.-]+:\d{2,5}\b|(?<![\w/])\/[\w./-]+\.sock\b/gi;

/**
 * Names servers 'server 1', 'server 2' and so on instead of their addresses. The same address keeps its number as long
 * as the process runs.
 */
export class Addresses {
  readonly #numbers = new Map<string, number>();

  without(text: string): string {
    return text.replace(ADDRESS, (address) => {
      const known = this.#numbers.get(address) ?? this.#numbers.size + 1;
      // Bounded: texts come from the doctor, and name servers only.
      if (this.#numbers.size < 1_000) this.#numbers.set(address, known);
      return `server ${known}`;
    });
  }
}
