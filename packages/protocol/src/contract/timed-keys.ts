/**
 * Keys of a timed set: what a `RetryQueue` or a `Scheduler` holds. All of them have the hash tag
 * `{<name>}`, and the kind before it, so that neither collides with the other or with a queue of
 * requests of the same name.
 */
export type TimedKind = 'retry' | 'schedule';

export interface TimedKeys {
  /** zset · key → server time in ms from which it may be taken: its own, or the end of its lease; see lua/lib/timed.lua */
  readonly due: string;
  /** hash · key → 'created failures payload' of a task · goes with it */
  readonly tasks: string;
  /** hash · key → 'token at ends after' while it is taken · goes when that is settled */
  readonly leases: string;
  /** hash · 'at', when a length was last given, and 'from', a look through what lies ahead · goes with the last key */
  readonly clock: string;
  /** stream · what was discarded, the oldest first, `keepFailures` of them */
  readonly failures: string;
  /** shard channel · the server time of what was put before all that were there */
  readonly channel: string;
  /** hash · what one caller was answered last: it is answered the same again · goes by itself */
  readonly caller: (id: string) => string;
  /** whatever type its condition makes of it · a key of the queue's condition */
  readonly condition: (name: string) => string;
}

export function timedKeys(kind: TimedKind, name: string): TimedKeys {
  const key = (what: string) => `${kind}:{${name}}:${what}`;
  return {
    due: key('due'),
    tasks: key('tasks'),
    leases: key('leases'),
    clock: key('clock'),
    failures: key('failures'),
    channel: key('channel'),
    caller: (id) => key(`caller:${id}`),
    condition: (of) => key(`condition:${of}`),
  };
}
