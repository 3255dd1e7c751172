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
  'attempts',
  'backoff',
  'attemptTimeoutMs',
  'deadlineMs',
  'delayMs',
  'runAt',
  'expedite',
  'toleratedFailures',
  'onExceeded',
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

/**
 * Releases whose default limit was 10 named a request without one so. It still is, so that what was
 * submitted by one of them is recognised when a later one asks for it again, and the other way round;
 * and a limit of 10 that is given is told from it (docs/decisions/0032).
 */
const limitInDigest = (limit: number | null | undefined) => (limit === 10 ? '10' : (limit ?? 10));

/** Digest by which the same id with other options is told from a repetition (docs/decisions/0003). */
export function optionsDigest(queue: string, options: CheckedOptions): string {
  const { runAt } = options;
  // A time is the same however it is given.
  const plain = {
    ...options,
    limit: limitInDigest(options.limit),
    runAt: runAt === undefined ? undefined : Number(runAt),
  };
  const content = CONTENT.map((name) => [name, plain[name] ?? null]);
  // Only where it is asked for: releases that had none give a request without it the same digest.
  if (options.timing) content.push(['timing', true]);
  return createHash('sha256')
    .update(canonical([queue, content]))
    .digest('base64url');
}

/** So much text is hashed at once: a call for each of many small payloads would cost more than they do. */
const HASH_AT_ONCE = 65_536;

/**
 * The name of a submission whose items are all known before: the same options and items have the same,
 * in any process, so that asking again is recognised and adds nothing twice.
 */
export function submissionName(optionsDigest: string, payloads: Iterable<string>): string {
  const hash = createHash('sha256').update(optionsDigest);
  let text = '';
  for (const payload of payloads) {
    text += `${payload.length}:${payload}`;
    if (text.length < HASH_AT_ONCE) continue;
    hash.update(text);
    text = '';
  }
  return hash.update(text).digest('base64url').slice(0, 22);
}
