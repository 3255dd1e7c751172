import type { RequestKeys } from '../../contract/keys.js';
import { type Client, isCluster } from '../../redis/client.js';
import { type Arguments, type Reply, run } from '../../scripts/run-script.js';
import { Batcher } from '../batcher.js';

type Enters = Arguments<'enter'>;
type Settles = Arguments<'settle'>;

/** A request to enter. `common`: what it may have in common with others of the same call. */
export interface Entering {
  readonly keys: RequestKeys;
  readonly common: Omit<Enters, 'entering'>;
  readonly entering: Enters['entering'][number];
}

/** A request to settle. */
export interface Settling {
  readonly keys: RequestKeys;
  readonly common: Omit<Settles, 'settling'>;
  readonly settling: Settles['settling'][number];
}

export type EnterReply = Reply<'enter'>[number];
export type SettleReply = Reply<'settle'>[number];

/** Fields to read of the state of a request. */
interface Reading {
  readonly keys: Pick<RequestKeys, 'request'>;
  readonly fields: readonly string[];
}

/**
 * The calls on requests that all who share a client make most often: those of one turn of the event loop go
 * together.
 */
export interface RequestCalls {
  enter(asked: Entering): Promise<EnterReply>;
  settle(asked: Settling): Promise<SettleReply>;
  /** Answers the fields as they are stored, '' for missing ones. */
  read(asked: Reading): Promise<readonly string[]>;
}

function callsOn(client: Client): RequestCalls {
  // In a cluster each request has a hash slot of its own.
  const apart = isCluster(client);
  const enters = new Batcher<Entering, EnterReply>({
    kindOf: ({ keys, common: { worker, leaseMs, most, ahead, quick, tasks } }) =>
      apart ? keys : `${worker} ${leaseMs} ${most} ${ahead} ${quick} ${tasks}`,
    send: (some) => {
      const requests = some.map(({ keys }) => keys);
      const entering = some.map((one) => one.entering);
      return run(client, 'enter', { requests }, { ...some[0].common, entering });
    },
  });
  const settles = new Batcher<Settling, SettleReply>({
    kindOf: ({ keys, common: { worker, leaseMs } }) => (apart ? keys : `${worker} ${leaseMs}`),
    sizeOf: ({ settling: { outcomes, read } }) => Math.max(1, outcomes.length, read),
    send: (some) => {
      const requests = some.map(({ keys }) => keys);
      const settling = some.map((one) => one.settling);
      return run(client, 'settle', { requests }, { ...some[0].common, settling });
    },
  });
  const reads = new Batcher<Reading, readonly string[]>({
    kindOf: ({ keys, fields }) => (apart ? keys : fields.join()),
    send: async (some) => {
      const requests = some.map(({ keys }) => keys.request);
      const replies = await run(client, 'read-state', { requests }, { fields: some[0].fields });
      return replies.map(({ values }) => values);
    },
  });
  return {
    enter: (asked) => enters.ask(asked),
    settle: (asked) => settles.ask(asked),
    read: (asked) => reads.ask(asked),
  };
}

const known = new WeakMap<Client, RequestCalls>();

export function requestCalls(client: Client): RequestCalls {
  const calls = known.get(client) ?? callsOn(client);
  known.set(client, calls);
  return calls;
}
