import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';

/** A program of the bench in a process of its own. It gets an order, and answers words with reports. */
export class ChildProgram<Word extends string> {
  readonly #child: ChildProcess;
  readonly #exit: Promise<unknown>;
  readonly #failure: Promise<never>;

  private constructor(program: URL, order: object) {
    this.#child = fork(program, [JSON.stringify(order)]);
    this.#exit = once(this.#child, 'exit');
    this.#failure = this.#exit.then(() => {
      throw new Error('a process of the bench ended early; see above');
    });
    this.#failure.catch(() => {});
  }

  /** Resolves when the program has warmed up and sent its first message. */
  static async start<Word extends string>(
    program: URL,
    order: object,
  ): Promise<ChildProgram<Word>> {
    const child = new ChildProgram<Word>(program, order);
    await child.#next();
    return child;
  }

  /** Sends a word and waits for the answer. @throws Error if the process ends instead */
  async ask<Answer>(word: Word): Promise<Answer> {
    const answer = this.#next();
    this.#child.send(word);
    return (await answer) as Answer;
  }

  async #next(): Promise<unknown> {
    const [message] = await Promise.race([once(this.#child, 'message'), this.#failure]);
    return message;
  }

  /** Lets go of the program and waits for its end. */
  async close(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect();
    await this.#exit;
  }
}

/** How long a program without a parent may take to end, in ms. */
const END_MS = 10_000;

/** What the program does with each word. It ends when its parent lets go of it. */
export async function answerWords<Order, Word extends string>(
  prepare: (order: Order) => Promise<{
    answers: Record<Word, () => Promise<unknown>>;
    close(): Promise<unknown>;
  }>,
): Promise<void> {
  const tell = (message: unknown) => process.send?.(message);
  let end: (() => Promise<unknown>) | undefined;
  process.on('disconnect', async () => {
    // Its parent was killed, and the Redis with it: neither the preparation nor the end may come to an end.
    setTimeout(() => process.exit(1), END_MS);
    await end?.();
    process.exit(end ? 0 : 1);
  });
  // Killed while this process was loading its modules: the event came before anyone listened.
  if (!process.connected) process.exit(1);
  const { answers, close } = await prepare(JSON.parse(process.argv[2] ?? '') as Order);
  end = close;
  process.on('message', async (word: Word) => tell((await answers[word]()) ?? 'done'));
  tell('ready');
}
