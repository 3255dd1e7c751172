import type { Inspected, RequestReads } from '@piecework/protocol';
import {
  STANDSTILL_FIELDS,
  type Standstill,
  type StandstillQueue,
  silentWorkersOf,
  standstillOf,
} from './standstill.js';
import { COUNT_FIELDS } from './status.js';

/** After so long without a settled sub-request its cause is looked for, and then again as often; in ms. */
const LOOK_MS = 900;
const FIELDS = [...new Set([...COUNT_FIELDS, ...STANDSTILL_FIELDS])];

/** Notices that a request does not move, and finds out why. As long as it moves, that costs no call. */
export class Stall {
  readonly #request: RequestReads;
  readonly #queue: StandstillQueue;
  #place = '';
  /** When it last moved, or when it was last found out why it does not. */
  #since = 0;
  #found: Standstill | undefined;

  constructor(request: RequestReads, queue: StandstillQueue) {
    this.#request = request;
    this.#queue = queue;
  }

  /** `seen`: with the fields of the counts. @returns why nothing moves; undefined: it moves, or that is not known */
  async note({ state }: Inspected, atMs = performance.now()): Promise<Standstill | undefined> {
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

  async #look(): Promise<Standstill | undefined> {
    const seen = await this.#request.inspect(FIELDS);
    if (!seen) return undefined;
    const silent = await silentWorkersOf(this.#request, seen);
    return standstillOf(this.#request.keys.id, seen, this.#queue, silent);
  }
}
