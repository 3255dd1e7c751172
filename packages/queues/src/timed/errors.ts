import { PieceworkError } from '@piecework/protocol';

/** The lease of something that was taken is over, or somebody else has it: the reason of its signal. */
export class LeaseLostError extends PieceworkError {
  override readonly name = 'LeaseLostError';
  readonly key: string;

  constructor(key: string) {
    super('the lease is over; somebody else may have it', { code: 'LEASE_LOST' });
    this.key = key;
  }
}
