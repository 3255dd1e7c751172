import { encodeCheckpoint } from '@piecework/protocol';

/** Most checkpoints in one call: at their largest, a script gets 800 KB of them. */
const AT_ONCE = 100;

/**
 * The last checkpoint of one running sub-request. It is unsent until the server has answered that it stores it.
 */
export class Checkpoint {
  #unsent: string | undefined;

  /** @throws PayloadError when it is not JSON or too large; the one before stays */
  set(value: unknown): void {
    this.#unsent = encodeCheckpoint(value);
  }

  get unsent(): string | undefined {
    return this.#unsent;
  }

  /** The server stores `text`; what was set meanwhile is still to be sent. */
  kept(text: string): void {
    if (this.#unsent === text) this.#unsent = undefined;
  }
}

/** A sub-request that may have a checkpoint. */
interface Reporter {
  readonly index: number;
  readonly kept: Checkpoint | undefined;
}

interface Sent {
  readonly index: number;
  readonly checkpoint: Checkpoint;
  readonly text: string;
}

/** Those of `reporters` that have something to send. */
export function unsentOf(reporters: Iterable<Reporter>): Sent[] {
  const found: Sent[] = [];
  for (const { index, kept: checkpoint } of reporters) {
    const text = checkpoint?.unsent;
    if (checkpoint === undefined || text === undefined) continue;
    found.push({ index, checkpoint, text });
    if (found.length === AT_ONCE) break;
  }
  return found;
}

/** As `renew` takes them. */
export const reportsOf = (sent: readonly Sent[]): string[] =>
  sent.flatMap(({ index, text }) => [`${index}:checkpoint`, text]);

/**
 * Checkpoints of sub-requests that ended without success and are not settled yet. They are sent before the settle,
 * or the next attempt would not find them.
 */
export class LastCheckpoints {
  #left: Reporter[] = [];

  get size(): number {
    return this.#left.length;
  }

  /** Adds nothing if there is no checkpoint, or the server stores it already. */
  add({ index, kept }: Reporter): void {
    if (kept?.unsent !== undefined) this.#left.push({ index, kept });
  }

  /**
   * `renew`: sends reports until they are answered. The server takes those of sub-requests that this worker still
   * owns; of the others it has newer ones.
   */
  async send(renew: (reports: readonly string[]) => Promise<unknown>): Promise<void> {
    while (this.#left.length > 0) {
      const sent = unsentOf(this.#left.splice(0, AT_ONCE));
      await renew(reportsOf(sent));
      for (const { checkpoint, text } of sent) checkpoint.kept(text);
    }
  }

  clear(): void {
    this.#left = [];
  }
}
