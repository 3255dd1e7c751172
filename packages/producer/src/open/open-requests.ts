import { Agenda, afterReading, type QueueCommands } from '@piecework/protocol';
import { type AskedSubmission, closedError, type ProducerContext } from '../create/submission.js';
import { type ItemCheck, OpenRequest } from './open-request.js';

/** How long a close waits until appended items are in, in ms. */
const FLUSH_MS = 5_000;

/** A shard of the queue and what is open in it. Its agenda is ticked while anything is. */
interface Desk {
  readonly queue: QueueCommands;
  readonly agenda: Agenda;
  readonly open: Set<OpenRequest>;
}

/** The open requests of one producer. */
export class OpenRequests {
  readonly #context: ProducerContext;
  readonly #desks: readonly Desk[];
  /** Those that callers have; the others belong to submissions under way. */
  readonly #handles = new Set<OpenRequest>();

  constructor(context: ProducerContext) {
    this.#context = context;
    this.#desks = context.shards.all.map((queue) => ({
      queue,
      agenda: new Agenda(context.connection, queue),
      open: new Set(),
    }));
  }

  /** Opens a request for a submission of this producer. @throws ClosedError */
  open(
    generation: number,
    { id, owner, options }: AskedSubmission,
    more: { joined?: boolean; check?: ItemCheck | undefined; known?: number; allIn?: boolean } = {},
  ): OpenRequest {
    const { connection, shards, closing } = this.#context;
    if (closing.aborted) throw closedError(connection);
    const parts = { id, generation, producer: owner, options, closing, ...more };
    const { queue, agenda, open } = this.#desks[shards.indexOf(id)] as Desk;
    const request = new OpenRequest(connection, queue, parts, (closed) => {
      open.delete(closed);
      this.#handles.delete(closed);
      if (open.size === 0) void agenda.close();
    });
    if (request.allIn) return request;
    open.add(request);
    agenda.start();
    return request;
  }

  /** As `open`, for a caller: items that it has appended are flushed by a close. */
  openHandle(...args: Parameters<OpenRequests['open']>): OpenRequest {
    const request = this.open(...args);
    if (!request.allIn) this.#handles.add(request);
    return request;
  }

  /**
   * Ends submissions under way, and closes what callers have open, which waits for at most 5 s until their items
   * are in. @throws as OpenRequest.close; an AggregateError if several fail
   */
  async flush(): Promise<void> {
    const handles = [...this.#handles];
    for (const { open } of this.#desks)
      for (const request of open) if (!this.#handles.has(request)) request.leave();
    const giveUp = () => {
      for (const request of handles) request.leave();
    };
    const timer = afterReading(FLUSH_MS, giveUp);
    const closed = await Promise.allSettled(handles.map((request) => request.close()));
    clearTimeout(timer);
    const errors = closed.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    if (errors.length > 1) throw new AggregateError(errors, `${errors[0].message}, and others`);
    if (errors.length > 0) throw errors[0];
  }

  /** Ends the agendas; waits for a tick under way. */
  async close(): Promise<void> {
    await Promise.all(this.#desks.map(({ agenda }) => agenda.close()));
  }
}
