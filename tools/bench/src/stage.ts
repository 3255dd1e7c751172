import type { Redis } from 'ioredis';
import { nanoid } from 'nanoid';
import type { Session } from './contender.js';
import { contenders } from './contenders/index.js';
import { makePayloads, type Payload } from './payloads.js';
import type { RunOrder } from './run-order.js';
import { Tally } from './tally.js';

/** The common part of all measurements of one contender. */
export class Stage {
  /** How often the handler ran. */
  handled = 0;

  constructor(
    readonly order: RunOrder,
    readonly probe: Redis,
  ) {}

  /** As many as the order says. */
  payloads(): Payload[] {
    return makePayloads(this.order.count, this.order.payloadBytes);
  }

  /** A session on a queue of its own, with no worker yet. */
  openSession(): Promise<Session> {
    const { host, port, concurrency, pieceworkRoot, contender } = this.order;
    const { limit = concurrency, echoes } = this.order;
    const handle = async (payload: Payload) => {
      this.handled += 1;
      return echoes ? payload : payload.n;
    };
    const queue = `bench-${nanoid(6)}`;
    return contenders[contender].open({
      ...{ host, port, queue, concurrency, limit, pieceworkRoot, handle },
    });
  }

  /** A whole run that is not measured: it compiles code and loads scripts. */
  async warmUp(): Promise<void> {
    const { warmUpCount, payloadBytes } = this.order;
    const session = await this.openSession();
    await session.startWorker();
    await session.submit(makePayloads(warmUpCount, payloadBytes));
    await this.readResults(session, warmUpCount);
    await session.close();
    this.handled = 0;
  }

  /** @throws Error unless every result came exactly once */
  async readResults(session: Session, count = this.order.count): Promise<void> {
    const tally = new Tally(count);
    await session.readResults(tally);
    tally.check();
  }
}
