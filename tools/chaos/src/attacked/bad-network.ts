import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/*
 * A proxy between some processes and Redis, on loopback, that can delay, swallow or cut. Bytes that a dead connection
 * has not delivered are never delivered: the successor of a killed process relies on that, and so does a client that
 * gave its connection up.
 */

/** A message of a shard channel as RESP 2 writes it. */
const NOTICE = /\*3\r\n\$8\r\nsmessage\r\n\$\d+\r\n[^\r]*\r\n\$\d+\r\n[^\r]*\r\n/g;

interface Link {
  readonly near: Socket;
  readonly far: Socket;
  /** Whether it has subscribed: what comes back on it are notices. */
  listens: boolean;
  /** Swallows everything for good; its two ends are never notified. */
  dead: boolean;
  readonly toRedis: Late;
  readonly fromRedis: Late;
}

/** Delayed bytes in one direction, in order. */
interface Late {
  readonly waiting: Buffer[];
  until: number;
}

const nothingLate = (): Late => ({ waiting: [], until: 0 });

export interface NetworkOptions {
  readonly name: string;
  readonly toPort: number;
  /** Whether notices are swallowed all the time. */
  readonly swallowsNotices?: boolean;
}

export type Direction = 'to redis' | 'from redis' | 'both';

export class BadNetwork implements AsyncDisposable {
  readonly name: string;
  readonly #swallowsNotices: boolean;
  readonly #server: Server;
  readonly #links = new Set<Link>();
  #delay: { readonly ms: number; readonly direction: Direction } | undefined;
  #swallows: Direction | undefined;

  private constructor({ name, toPort, swallowsNotices = false }: NetworkOptions) {
    this.name = name;
    this.#swallowsNotices = swallowsNotices;
    this.#server = createServer({ noDelay: true }, (near) => {
      const far = connect({ port: toPort, host: '127.0.0.1', noDelay: true });
      const late = { toRedis: nothingLate(), fromRedis: nothingLate() };
      this.#join({ near, far, listens: false, dead: false, ...late });
    });
  }

  static async open(options: NetworkOptions): Promise<BadNetwork> {
    const proxy = new BadNetwork(options);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Breaks every connection; returns how many there were. */
  cut(): number {
    const { size } = this.#links;
    for (const { near, far } of this.#links) {
      near.resetAndDestroy();
      far.destroy();
    }
    return size;
  }

  /** Delays everything by this time, until `heal`. */
  delay(ms: number, direction: Direction): void {
    this.#delay = { ms, direction };
  }

  /** Connections stay up and nothing comes through, until `heal`. */
  swallow(direction: Direction): void {
    this.#swallows = direction;
  }

  /**
   * Ends delays and black holes. Connections that were in a black hole stay dead, as in a network that has forgotten
   * them. 'told': both ends get a reset now; 'untold': they have to find out.
   */
  heal(ends: 'told' | 'untold'): void {
    if (this.#swallows && ends === 'told') this.cut();
    else if (this.#swallows) for (const link of this.#links) link.dead = true;
    this.#swallows = undefined;
    this.#delay = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.cut();
    await once(this.#server, 'close');
  }

  #join(link: Link): void {
    const { near, far } = link;
    this.#links.add(link);
    const end = () => {
      this.#links.delete(link);
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) socket.on('error', () => {}).on('close', end);
    near.on('data', (data) => {
      link.listens ||= this.#swallowsNotices && data.includes('ssubscribe');
      this.#pass(link, far, 'to redis', data);
    });
    far.on('data', (data) => {
      const rest = link.listens ? withoutNotices(data) : data;
      if (rest.length > 0) this.#pass(link, near, 'from redis', rest);
    });
  }

  #pass(link: Link, to: Socket, direction: Direction, data: Buffer): void {
    const concerns = (which: Direction | undefined) => which === 'both' || which === direction;
    if (link.dead || concerns(this.#swallows)) return;
    const late = direction === 'to redis' ? link.toRedis : link.fromRedis;
    const delayMs = this.#delay && concerns(this.#delay.direction) ? this.#delay.ms : 0;
    if (delayMs === 0 && late.waiting.length === 0) {
      to.write(data);
      return;
    }
    late.waiting.push(data);
    late.until = Math.max(late.until, performance.now() + delayMs);
    setTimeout(() => {
      const first = late.waiting.shift();
      if (first && !link.dead && !to.destroyed) to.write(first);
    }, late.until - performance.now());
  }
}

/** A notice that arrives in two chunks passes; that is rare, as notices are short. */
function withoutNotices(data: Buffer): Buffer {
  const text = data.toString('latin1');
  return text.includes('smessage') ? Buffer.from(text.replace(NOTICE, ''), 'latin1') : data;
}
