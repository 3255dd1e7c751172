import { encodeCheckpoint, type RequestCommands } from '@piecework/protocol';

/** Most checkpoints in one call: with their greatest size a script has a good 800 KB of them. */
const AT_ONCE = 100;

/**
 * How far one running sub-request has come, by its own account: the last value only. It is unsent until
 * the server has answered that it keeps it.
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

  /** The server keeps `text`; what was set meanwhile is still to be sent. */
  kept(text: string): void {
    if (this.#unsent === text) this.#unsent = undefined;
  }
}

/** A sub-request that may have come to a checkpoint. */
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

/** The worker that sends them. */
interface Caller {
  readonly id: string;
  readonly leaseMs: number;
  /** Sends a call again until it is answered. */
  insist<T>(requestId: string, call: () => Promise<T>): Promise<T>;
}

/**
 * Checkpoints of sub-requests that ended without success and are not settled yet. They go to the server
 * before the settle, or whoever runs the sub-request next would not find them.
 */
export class LastCheckpoints {
  #left: Reporter[] = [];

  get size(): number {
    return this.#left.length;
  }

  /** Nothing, if it has none, or the server keeps it already. */
  add({ index, kept }: Reporter): void {
    if (kept?.unsent !== undefined) this.#left.push({ index, kept });
  }

  /** The server takes those that are still this worker's; of the others there is a newer one. */
  async send(core: Caller, commands: RequestCommands, generation: number): Promise<void> {
    while (this.#left.length > 0) {
      const sent = unsentOf(this.#left.splice(0, AT_ONCE));
      const reports = reportsOf(sent);
      await core.insist(commands.keys.id, () =>
        commands.renew(generation, core.id, core.leaseMs, reports),
      );
      for (const { checkpoint, text } of sent) checkpoint.kept(text);
    }
  }

  clear(): void {
    this.#left = [];
  }
}
