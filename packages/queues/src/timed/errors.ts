import { PieceworkError } from '@piecework/protocol';

/** The lease of an item has ended, or another consumer has taken the item: the reason of the item's signal. */
export class LeaseLostError extends PieceworkError {
  override readonly name = 'LeaseLostError';
  readonly key: string;

  constructor(key: string) {
    super('the lease has ended; another consumer may have the item', { code: 'LEASE_LOST' });
    this.key = key;
  }
}
