/**
 * Redis keys of a timed set, the items of a `RetryQueue` or a `Scheduler`. All of them begin with the kind, followed by
 * the hash tag `{<name>}`, so a RetryQueue, a Scheduler and a queue of requests may have the same name.
 */
export type TimedKind = 'retry' | 'schedule';

export interface TimedKeys {
  /**
   * zset · key → server time in ms from which it may be taken: its own, or the end of its lease; see
   * lua/lib/timed-entries.lua
   */
  readonly due: string;
  /** hash · key → 'created failures payload' of an item · the field is removed with the item */
  readonly tasks: string;
  /** hash · key → 'token at ends after' while it is taken · the field is removed when that is settled */
  readonly leases: string;
  /**
   * hash · 'at': when a length was last given; 'from': where the check of later keys continues · goes with the last key
   */
  readonly clock: string;
  /** stream · discarded items, the oldest first, at most `keepFailures` */
  readonly failures: string;
  /** shard channel · due time of an item that was put before all others */
  readonly channel: string;
  /** hash · the last reply to one caller, given again when its call is repeated · expires */
  readonly caller: (id: string) => string;
  /** any type · a key of the queue's condition, which alone uses it */
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
