import type { RequestOptions } from '@piecework/producer';

export interface Letter {
  readonly to: string;
  readonly number: number;
}

export interface Report {
  readonly month: string;
}

/** The requests that the example submits one after another. */
export interface Kind {
  /** Also the name of its task, and how the ids of its requests begin. */
  readonly name: string;
  readonly items: readonly unknown[];
  readonly options: Pick<
    RequestOptions,
    'limit' | 'priority' | 'attempts' | 'backoff' | 'toleratedFailures' | 'metadata'
  >;
}

const numbered = <T>(n: number, item: (number: number) => T) =>
  Array.from({ length: n }, (_, i) => item(i));
const digits = (number: number, n: number) => String(number).padStart(n, '0');

/** Each takes about a minute on eight slots; their limits leave some slots to the last one. */
export const KINDS: readonly Kind[] = [
  {
    name: 'thumbnail',
    items: numbered(600, (i) => `photos/${digits(i, 4)}.${i % 100 === 42 ? 'tiff' : 'jpg'}`),
    options: { limit: 3, metadata: { customer: 'Lighthouse Photos' } },
  },
  {
    name: 'mail',
    items: numbered(360, (number): Letter => ({ to: `reader-${number}@example.org`, number })),
    options: {
      ...{ limit: 2, attempts: 3, backoff: { type: 'exponential', delayMs: 500 } },
      ...{ toleratedFailures: 10, metadata: { campaign: 'autumn' } },
    },
  },
  {
    name: 'report',
    items: numbered(8, (i): Report => ({ month: `2026-${digits(i + 1, 2)}` })),
    options: { limit: 2, priority: 20 },
  },
  {
    name: 'backup',
    items: numbered(240, (i) => `/home/user-${digits(i, 3)}`),
    options: { priority: 80 },
  },
];
