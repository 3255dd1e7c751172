import type { Inspected, RequestReads } from '@piecework/protocol';
import type { Why } from './snapshot.js';
import { QueueSigns } from './standstill.js';
import { STATUS_FIELDS, type StatusQueue, statusIn } from './status.js';

/** After so long without a settled sub-request its cause is looked for, and then again as often; in ms. */
const LOOK_MS = 900;

/** Notices that a request does not move, and finds out why. As long as it moves, that costs no call. */
export class Stall {
  readonly #request: RequestReads;
  readonly #queue: Pick<StatusQueue, 'of' | 'named'>;
  #place = '';
  /** When it last moved, or when it was last found out why it does not. */
  #since = 0;
  #found: Why | undefined;

  constructor(request: RequestReads, queue: Pick<StatusQueue, 'of' | 'named'>) {
    this.#request = request;
    this.#queue = queue;
  }

  /** `seen`: with the fields of the counts. @returns why nothing moves; undefined: it moves, or that is not known */
  async note({ state }: Inspected, atMs = performance.now()): Promise<Why | undefined> {
    const { generation, succeeded, failed, cancelled, total } = state;
    const place = [generation, succeeded, failed, cancelled, total].join(' ');
    if (place !== this.#place) {
      this.#place = place;
      this.#since = atMs;
      this.#found = undefined;
    } else if (atMs - this.#since >= LOOK_MS) {
      this.#since = atMs;
      this.#found = await this.#look();
    }
    return this.#found;
  }

  async #look(): Promise<Why | undefined> {
    const seen = await this.#request.inspect(STATUS_FIELDS);
    if (!seen) return undefined;
    const status = await statusIn(this.#request, new QueueSigns(this.#queue), seen);
    // Otherwise its handlers run, and merely take their time.
    const { why, waitingFor } = status;
    return waitingFor && { why, waitingFor };
  }
}
