import {
  type Context,
  context,
  type Link,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type {
  RunAbout,
  RunEnd,
  RunSpan,
  Runs,
  RunsAbout,
  TraceContext,
} from '@piecework/protocol/contract';
import { attribute, common } from './attributes.js';
import { extracted, isSampled } from './carrier.js';
import { endSpan, recordError, startSpan } from './spans.js';

/** The runs of a request whose submission was not sampled. */
const UNTRACED: Runs = { begin: () => undefined };

/**
 * The handler runs of one worker and one request. A run has the baggage of the submission and a link to it. Unless
 * `asChildren`, it begins a trace of its own: a million runs in one trace could be neither stored nor shown.
 */
export function runsOf(
  tracer: Tracer,
  { queue, task, worker }: RunsAbout,
  stored: TraceContext | undefined,
  asChildren: boolean,
): Runs {
  if (stored === 'off') return UNTRACED;
  const submission = stored ? extracted(ROOT_CONTEXT, stored) : ROOT_CONTEXT;
  const origin = trace.getSpan(submission);
  if (origin && !isSampled(origin)) {
    // Only the baggage is wanted. What the handler calls follows the decision of the submission.
    const unsampled = new TracedRun(origin, submission);
    return { begin: () => unsampled };
  }
  const links: Link[] = origin ? [{ context: origin.spanContext() }] : [];
  // Without the span of the submission, only its baggage is left.
  const base = asChildren ? submission : trace.deleteSpan(submission);
  const attributes = {
    ...common(queue, 'process', 'process'),
    [attribute.client]: worker,
    ...(task === '' ? {} : { [attribute.task]: task }),
  };
  return {
    begin: (run) => {
      const options = {
        kind: SpanKind.CONSUMER,
        attributes: { ...attributes, ...attributesOf(run) },
        links,
      };
      const span = startSpan(tracer, `process ${queue}`, options, base);
      return new TracedRun(span, trace.setSpan(base, span));
    },
  };
}

const attributesOf = ({ requestId, index, attempt, crashes, entry }: RunAbout) => ({
  [attribute.conversation]: requestId,
  [attribute.message]: `${requestId}:${index}`,
  [attribute.index]: index,
  [attribute.attempt]: attempt,
  [attribute.generation]: Number.parseInt(entry, 10),
  ...(crashes === 0 ? {} : { [attribute.crashes]: crashes }),
});

class TracedRun implements RunSpan {
  readonly #span: Span;
  readonly #context: Context;

  constructor(span: Span, within: Context) {
    this.#span = span;
    this.#context = within;
  }

  within<T>(handler: () => T): T {
    return context.with(this.#context, handler);
  }

  end(how: RunEnd, error?: unknown): void {
    this.#span.setAttribute(attribute.outcome, how);
    if (error !== undefined) recordError(this.#span, error);
    endSpan(this.#span);
  }
}
