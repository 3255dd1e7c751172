import { type Client, isCluster } from '../client.js';
import type { Redis } from '../ioredis.js';
import { LONG_TEXT } from '../long-text.js';

/*
 * ioredis hands each command to its socket as soon as it is called, and each is a system call of its own. Here all
 * commands that are called in one turn of the event loop share one write, once the promises of that turn have run.
 * A handler of the user may block the loop, so `sendGathered` is called before it starts.
 * (`enableAutoPipelining` of ioredis is no alternative: it holds commands back until the pipeline before is answered.)
 * This relies on ioredis writing each command as one text, or as one Buffer, to `client.stream`, which is a new one at
 * each 'connect'. Texts are joined up to LONG_TEXT characters.
 */

type Stream = Redis['stream'];

/** What is called in this turn, for one connection. */
class Gathered {
  text = '';
  readonly #write: (text: string) => boolean;

  constructor(stream: Stream) {
    const { write, end } = stream;
    this.#write = write.bind(stream);
    stream.write = ((...args: Parameters<typeof write>): boolean => {
      const [text] = args;
      if (typeof text === 'string' && args.length === 1) return this.#add(text);
      // Bytes keep their place behind the text before them.
      this.send();
      return write.apply(stream, args);
    }) as Stream['write'];
    stream.end = ((...args: Parameters<typeof end>): Stream => {
      // What was called before a disconnect is sent.
      this.send();
      return end.apply(stream, args);
    }) as Stream['end'];
  }

  send(): void {
    const { text } = this;
    if (text === '') return;
    this.text = '';
    this.#write(text);
  }

  #add(text: string): boolean {
    if (this.text.length + text.length > LONG_TEXT) this.send();
    if (this.text === '' && waiting.push(this) === 1) queueMicrotask(sendAfterPromises);
    this.text += text;
    return true;
  }
}

let waiting: Gathered[] = [];

/** Sends what was called in this turn, now. */
export function sendGathered(): void {
  if (waiting.length === 0) return;
  const all = waiting;
  waiting = [];
  for (const one of all) one.send();
}

/** A tick that a promise asks for runs behind all promises of the turn; any other runs before them. */
const sendAfterPromises = (): void => process.nextTick(sendGathered);

/** From its next connection on, the commands of one turn share a write. */
export function gatherWrites(client: Client): void {
  const nodes = isCluster(client) ? client.nodes('all') : [client];
  for (const node of nodes) gatherOf(node);
  if (isCluster(client)) client.on('+node', gatherOf);
}

function gatherOf(node: Redis): void {
  node.on('connect', () => new Gathered(node.stream));
}
