import type { FastifyRequest } from 'fastify';
import type { RedisInput } from 'piecework';

/** Who looks at the dashboard. */
export interface Visitor {
  /** As it stands in the audit log. */
  readonly name: string;
  /** false: this visitor may only read, even with `allowControl`. @default true */
  readonly control?: boolean | undefined;
}

/** What `mask` is called with, besides the value. */
export interface Masked {
  readonly kind: 'payload' | 'result' | 'metadata' | 'error';
  readonly queue: string;
  readonly requestId: string;
  readonly task: string;
}

export interface DashboardOptions {
  /** Where Redis is, as for `Piecework`. A client that is passed in is never closed. */
  readonly redis: RedisInput;
  /**
   * Called for each HTTP request, before anything is answered. A visitor may come in; undefined is answered by 401, and
   * anything without a `name` by 500. One visitor, by name, may have 20 pages open.
   * Required, unless `insecure` is set.
   */
  readonly authorize?:
    | ((request: FastifyRequest) => Visitor | undefined | Promise<Visitor | undefined>)
    | undefined;
  /**
   * Everybody who can reach the port is let in, but only from this machine: requests that come from another
   * address, or name a host other than localhost, are refused. @default false
   */
  readonly insecure?: boolean | undefined;
  /** Whether visitors may change, cancel and remove requests. @default false */
  readonly allowControl?: boolean | undefined;
  /** The queues of requests that are shown; tasks of DelayedTasks are in such queues, too. @default [{ name: 'req' }] */
  readonly queues?:
    | readonly { readonly name: string; readonly shards?: number | undefined }[]
    | undefined;
  /** Names of queues beside requests that are shown. @default none */
  readonly beside?:
    | {
        readonly retryQueues?: readonly string[] | undefined;
        readonly schedulers?: readonly string[] | undefined;
        readonly idQueues?: readonly string[] | undefined;
      }
    | undefined;
  /** Whether payloads and results may be shown, behind a click. Otherwise they never reach the page. @default false */
  readonly showPayloads?: boolean | undefined;
  /**
   * Replaces each value of a user before it is shown or searched: payloads, results, metadata, and messages and stacks
   * of errors. If it throws, or returns a promise, the value is hidden. @default shows them as they are
   */
  readonly mask?: ((value: unknown, about: Masked) => unknown) | undefined;
}

/** What is shown where `queues` names none. */
export const DEFAULT_QUEUES: NonNullable<DashboardOptions['queues']> = [{ name: 'req' }];
