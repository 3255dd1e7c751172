import { lasting, leaseCheckMs, renewAfterMs } from '@piecework/protocol';
import type { ProducerSigns, RetrySigns, SilentWorker } from './snapshot.js';

/*
 * Words of the sentence that says why a request is not further (why.ts): of times, counts and of who is silent.
 */

/** A holder that has not renewed for longer than this has missed a renewal; in ms. */
export const silentAfterMs = (leaseMs: number) => renewAfterMs(leaseMs) + 2 * leaseCheckMs(leaseMs);

export const isSilent = ({ seenAt, leaseEndsAt }: ProducerSigns, now: number) =>
  now - seenAt > silentAfterMs(leaseEndsAt - seenAt);

/** 'its producer was last seen 20 s ago; cancelled in 10 s' */
export function producerText(producer: ProducerSigns, now: number): string {
  const { seenAt, leaseEndsAt, ifLost } = producer;
  const seen = `its producer was last seen ${ago(seenAt, now)}`;
  if (!isSilent(producer, now)) return seen;
  const end = ifLost === 'seal' ? 'sealed' : 'cancelled';
  if (leaseEndsAt <= now) return `${seen}; ${end} when a worker runs, or somebody waits for it`;
  return `${seen}; ${end} in about ${lasting(leaseEndsAt - now)}`;
}

/** '12 are on a worker last seen 8 s ago; taken over in about 22 s' */
export function silenceOf(silent: readonly SilentWorker[], now: number): string {
  const leftMs = Math.max(...silent.map(({ leaseEndsAt }) => leaseEndsAt)) - now;
  const when = leftMs > 0 ? `in about ${lasting(leftMs)}` : 'soon';
  return `${onSilent(silent, now)}; taken over ${when}`;
}

/** '12 are on a worker last seen 8 s ago' */
export function onSilent(silent: readonly SilentWorker[], now: number): string {
  const owned = silent.reduce((sum, { inFlight }) => sum + inFlight, 0);
  const on = silent.length === 1 ? 'a worker' : `${silent.length} workers`;
  const seenAt = Math.max(...silent.map((one) => one.seenAt));
  const verb = owned === 1 ? 'is' : 'are';
  return `${n(owned)} ${verb} on ${on} last seen ${ago(seenAt, now)}`;
}

export const n = (count: number) => count.toLocaleString('en-US');
export const ago = (at: number, now: number) => `${seconds(now - at)} ago`;
/** '0 s': what was just now, too. */
export const seconds = (ms: number) =>
  ms < 1_000 ? `${Math.max(0, Math.round(ms / 1_000))} s` : lasting(ms);
export const slotsText = (slots: number) => `${n(slots)} ${slots === 1 ? 'slot' : 'slots'}`;
/** '2026-11-28T20:05:00Z' */
export const timeOf = (at: number) => new Date(at).toISOString().replace(/\.\d+/, '');
export const capitalised = (text: string) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
export const listed = (texts: readonly string[]) =>
  texts.length < 2 ? texts.join('') : `${texts.slice(0, -1).join(', ')} and ${texts.at(-1)}`;

/** ', the first in 5 s; the last error: TypeError: x is undefined (index 3)' */
export function dueText(retry: RetrySigns | undefined, delayed: number, now: number): string {
  if (!retry) return '';
  const first = delayed === 1 ? ', which is due' : ', the first is due';
  const { dueAt, lastError } = retry;
  const due = dueAt > now ? `${first} in ${lasting(dueAt - now)}` : `${first} now`;
  if (!lastError) return due;
  const { name, message, index } = lastError;
  return `${due}; the last error: ${name}: ${message} (index ${index})`;
}
