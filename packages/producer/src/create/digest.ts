import * as crypto from 'node:crypto';
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
  // The first producer sets it for all: one that renews less often would be taken for lost.
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
 * Releases with a default limit of 10 put 10 into the digest of a request without a limit. This release does the
 * same, so that each recognises what the other submitted. An explicit limit of 10 is distinguished by its type
 * (docs/decisions/0032).
 */
// cure: a request without a limit keeps the digest that it had with the default
const limitInDigest = (limit: number | null | undefined) => (limit === 10 ? '10' : (limit ?? 10));

/** The digest that distinguishes a repetition from the same id with other options (docs/decisions/0003). */
export function optionsDigest(queue: string, options: CheckedOptions): string {
  const content: unknown[] = CONTENT.map((name) => [name, inDigest(name, options)]);
  // Only if it is set: releases without this option give a request without it the same digest.
  if (options.timing) content.push(['timing', true]);
  return sha256(canonical([queue, content]));
}

function inDigest(name: (typeof CONTENT)[number], options: CheckedOptions): unknown {
  if (name === 'limit') return limitInDigest(options.limit);
  const { [name]: value = null } = options;
  // A Date and its number of ms are the same time.
  return name === 'runAt' && value !== null ? Number(value) : value;
}

/** How many characters one call hashes: a call for each of many small payloads would cost more than hashing them. */
const HASH_AT_ONCE = 65_536;

/**
 * The name of a submission whose items are all known beforehand. The same options and items give the same name in
 * any process, so that a repetition is recognised and adds no item twice.
 */
export function submissionName(optionsDigest: string, payloads: Iterable<string>): string {
  let hash: crypto.Hash | undefined;
  let text = optionsDigest;
  for (const payload of payloads) {
    text += `${payload.length}:${payload}`;
    if (text.length < HASH_AT_ONCE) continue;
    hash = (hash ?? crypto.createHash('sha256')).update(text);
    text = '';
  }
  const digest = hash ? hash.update(text).digest('base64url') : sha256(text);
  return digest.slice(0, 22);
}

/** In one call, which takes a third of the time, where Node has it (from 20.12 on). */
const sha256 = (text: string): string =>
  (crypto as Partial<typeof crypto>).hash?.('sha256', text, 'base64url') ??
  crypto.createHash('sha256').update(text).digest('base64url');
