/** Every key of an id queue. All are in the hash slot of `{<name>}`, and a drop removes them. */
export interface IdQueueKeys {
  readonly name: string;
  /**
   * hash · incarnation, options, counters 'pulled' 'completed' 'failures', 'sent:<sender>' → number of its last chunk
   */
  readonly state: string;
  /** list · ids in the order of adding · pushed right, popped left */
  readonly pending: string;
  /** zset · number → when its time runs out, or when it was last offered after that */
  readonly running: string;
  /** hash · number → 'attempt:stamp:id' of items that run or whose time ran out */
  readonly tasks: string;
  /** set · ids that are pending or running, in a unique queue only */
  readonly known: string;
  /** list · the latest 100 failures, newest left: id, key, message, time of each */
  readonly failed: string;
  /** zset · sender → time until which the number of its last chunk is kept */
  readonly senders: string;
}

/** The prefix lets a queue of requests have the same name. */
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
