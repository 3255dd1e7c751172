import type { BesideQueues, PrivacyOptions } from '@piecework/views';
import type { FastifyRequest } from 'fastify';
import type { RedisInput } from 'piecework';

/** Who looks at the dashboard. */
export interface Visitor {
  /** As it stands in the audit log. */
  readonly name: string;
  /** false: this visitor may only read, even with `allowControl`. @default true */
  readonly control?: boolean | undefined;
}

export interface DashboardOptions extends PrivacyOptions {
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
  readonly beside?: BesideQueues | undefined;
}

/** What is shown where `queues` names none. */
export const DEFAULT_QUEUES: NonNullable<DashboardOptions['queues']> = [{ name: 'req' }];
