import type { NamedChannel, Notifier } from '@piecework/notifier';
import type { Admin } from '../operate/admin.js';
import { RequestHandle } from './request-handle.js';
import type { Traced } from './traced.js';

/** The handle of a request that was just submitted or opened. */
export class SubmittedRequest<Result = unknown> extends RequestHandle<Result> {
  /**
   * Whether this call made the request. False: the request existed already, under the same id or key of
   * deduplication, whichever process submitted it. It may be an earlier call for the same that failed half-way.
   */
  readonly created: boolean;

  /** @internal */
  constructor(
    made: { readonly id: string; readonly generation: number; readonly created: boolean },
    notifier: Notifier,
    admin: Admin,
    named?: NamedChannel,
    traced?: Traced,
  ) {
    super(made.id, notifier, admin, made.generation, named, traced);
    this.created = made.created;
  }
}
