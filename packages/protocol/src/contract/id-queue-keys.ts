/** Every key of a queue of ids. All are of the hash slot of `{<name>}`, and go with a drop. */
export interface IdQueueKeys {
  readonly name: string;
  /** hash · life, options, counters 'pulled' 'completed' 'failures', 'sent:<sender>' → number of its last chunk */
  readonly state: string;
  /** list · ids in the order of adding · pushed right, popped left */
  readonly pending: string;
  /** zset · number → time at which its time runs out, or at which it was last offered after that */
  readonly running: string;
  /** hash · number → 'attempt:stamp:id' of those that run or ran out */
  readonly tasks: string;
  /** set · of a unique queue: ids that are pending or running */
  readonly known: string;
  /** list · the latest 100 failures, newest left: id, key, message, time of each */
  readonly failed: string;
  /** zset · sender → time until which the number of its last chunk is kept */
  readonly senders: string;
}

/** A prefix of its own, so that a queue of requests may have the same name. */
export function idQueueKeys(name: string): IdQueueKeys {
  const state = `ids:{${name}}`;
  return {
    name,
    state,
    pending: `${state}:pending`,
    running: `${state}:running`,
    tasks: `${state}:tasks`,
    known: `${state}:known`,
    failed: `${state}:failed`,
    senders: `${state}:senders`,
  };
}
