import { createHash } from 'node:crypto';
import type { CheckedOptions } from './options.js';

/** The options that say what a request is, as opposed to how this process submits it. */
const CONTENT = [
  'priority',
  'limit',
  'task',
  'window',
  'results',
  'maxCrashes',
  'retentionMs',
  'onProducerLost',
  // The first one sets it for all: who renews more slowly than that would be taken for lost.
  'producerLeaseMs',
  'metadata',
] as const;

/** JSON with the keys of objects in order, so that equal content has equal text. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    inner && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

/** Digest by which the same id with other options is told from a repetition (docs/decisions/0003). */
export function optionsDigest(queue: string, options: CheckedOptions): string {
  const content = CONTENT.map((name) => [name, options[name] ?? null]);
  return createHash('sha256')
    .update(canonical([queue, content]))
    .digest('base64url');
}
