import type { CompletionOutcome } from '@piecework/notifier';
import {
  type Connection,
  decodePolicy,
  RequestReads,
  type SubmissionMade,
  type Telemetry,
  type TraceContext,
} from '@piecework/protocol';
import pTimeout from 'p-timeout';

/** How long a span waits for the context that its request stores, in ms: without it the span has no link. */
const CONTEXT_MS = 1_000;

/** The calls of one `Piecework` object that have spans of their own. Only there if it has telemetry. */
export class Traced {
  readonly #telemetry: Telemetry;
  readonly #queue: string;
  readonly #connection: Connection;

  constructor(telemetry: Telemetry, queue: string, connection: Connection) {
    this.#telemetry = telemetry;
    this.#queue = queue;
    this.#connection = connection;
  }

  /** `send` stores the context that it gets in the request. */
  submit<T extends SubmissionMade>(
    task: string | undefined,
    send: (context: TraceContext | undefined) => Promise<T>,
  ): Promise<T> {
    return this.#telemetry.submit({ queue: this.#queue, task }, send);
  }

  completion(
    requestId: string,
    wait: () => Promise<CompletionOutcome>,
  ): Promise<CompletionOutcome> {
    const context = () =>
      pTimeout(this.#contextOf(requestId), { milliseconds: CONTEXT_MS, fallback: () => undefined });
    return this.#telemetry.completion({ queue: this.#queue, requestId, context }, wait);
  }

  async #contextOf(requestId: string): Promise<TraceContext | undefined> {
    const { policy = '' } = await new RequestReads(this.#connection, requestId).fields('policy');
    return decodePolicy(policy).trace;
  }
}
