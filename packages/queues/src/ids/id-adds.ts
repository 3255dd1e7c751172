import { type IdQueueCommands, type NoIdQueue, PieceworkError, TIMES } from '@piecework/protocol';

/** One chunk contains at most this many ids, with about this many characters in all. */
const CHUNK_IDS = 500;
const CHUNK_CHARACTERS = 250_000;

function chunksOf(ids: readonly string[]): string[][] {
  const chunks: string[][] = [[]];
  let characters = 0;
  for (const id of ids) {
    const last = chunks.at(-1) as string[];
    characters += id.length;
    if (last.length < CHUNK_IDS && (characters <= CHUNK_CHARACTERS || last.length === 0)) {
      last.push(id);
    } else {
      chunks.push([id]);
      characters = id.length;
    }
  }
  return chunks;
}

const isSame = (a: readonly string[], b: readonly string[]) =>
  a.length === b.length && a.every((id, i) => id === b[i]);

export type Added =
  | { readonly verdict: 'ok'; readonly pending: number; readonly added: number }
  | NoIdQueue;
type Answered = Awaited<ReturnType<IdQueueCommands['add']>>;

/**
 * Sends the adds of one object, one after the other. Each chunk of ids has a number, so a chunk that reaches the
 * server twice, or late, adds nothing twice. An add that failed with a retryable error keeps its numbers: if the
 * next add has the same ids, it is the same add.
 */
export class IdAdds {
  readonly #commands: IdQueueCommands;
  readonly #incarnation: string;
  readonly #sender: string;
  readonly #keepMs: number;
  readonly #call: (call: () => Promise<Answered>) => Promise<Answered>;
  #previous: Promise<unknown> = Promise.resolve();
  #nextNumber = 1;
  #unsure: { readonly ids: readonly string[]; readonly first: number } | undefined;

  constructor(parts: {
    commands: IdQueueCommands;
    incarnation: string;
    sender: string;
    /** The server remembers the number of a chunk for at least this time, in ms: longer than a call may be late. */
    keepMs: number;
    /** Makes a call, and repeats it while Redis is unavailable. */
    call: (call: () => Promise<Answered>) => Promise<Answered>;
  }) {
    this.#commands = parts.commands;
    this.#incarnation = parts.incarnation;
    this.#sender = parts.sender;
    this.#keepMs = parts.keepMs;
    this.#call = parts.call;
  }

  add(ids: readonly string[]): Promise<Added> {
    const adding = this.#previous.then(() => this.#add(ids));
    this.#previous = adding.catch(() => {});
    return adding;
  }

  async #add(ids: readonly string[]): Promise<Added> {
    const again = this.#unsure && isSame(this.#unsure.ids, ids) ? this.#unsure : undefined;
    const first = again?.first ?? this.#nextNumber;
    const chunks = chunksOf(ids);
    this.#nextNumber = first + chunks.length;
    this.#unsure = undefined;
    let pending = 0;
    const added = chunks.map(() => 0);
    let answeredAt = Date.now();
    try {
      for (let i = 0; i < chunks.length; i += 1) {
        const number = first + i;
        // After a long pause, such as sleep of this machine, the server may have forgotten the number on purpose:
        // then an unknown number does not mean that writes were lost.
        const known = Date.now() - answeredAt < this.#keepMs / 2;
        const numbered = {
          sender: this.#sender,
          number,
          keepMs: this.#keepMs + TIMES.longestStepMs,
          first: known ? first : number,
        };
        const chunk = chunks[i] as string[];
        const reply = await this.#call(() =>
          this.#commands.add(this.#incarnation, numbered, chunk),
        );
        if (reply.verdict === 'gone') return reply;
        answeredAt = Date.now();
        if (reply.verdict === 'gap') {
          // Redis lost its last writes, among them chunks of this add: send again from the first missing one.
          i = Math.max(-1, reply.known - first);
          continue;
        }
        pending = reply.pending;
        added[i] = reply.added;
      }
    } catch (error) {
      if (error instanceof PieceworkError && error.retryable) this.#unsure = { ids, first };
      throw error;
    }
    return { verdict: 'ok', pending, added: added.reduce((sum, n) => sum + n, 0) };
  }
}
