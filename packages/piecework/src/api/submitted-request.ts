import type { Notifier } from '@piecework/notifier';
import type { Admin } from '../operate/admin.js';
import { RequestHandle } from './request-handle.js';

/** The handle of a request that was just submitted or opened. */
export class SubmittedRequest<Result = unknown> extends RequestHandle<Result> {
  /**
   * Whether this call made the request. False: it joined one that was there already, under the same id or
   * key of deduplication, whoever submitted it; be it an earlier call for the same that failed half-way.
   */
  readonly created: boolean;

  constructor(
    made: { readonly id: string; readonly generation: number; readonly created: boolean },
    notifier: Notifier,
    admin: Admin,
  ) {
    super(made.id, notifier, admin, made.generation);
    this.created = made.created;
  }
}
