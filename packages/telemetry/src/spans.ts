import {
  type Attributes,
  type Context,
  INVALID_SPAN_CONTEXT,
  type Link,
  type Span,
  type SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { attribute } from './attributes.js';
import { guarded } from './guarded.js';

/** Starts a span; one that records nothing if the application's own tracing code throws. */
export function startSpan(
  tracer: Tracer,
  name: string,
  options: {
    readonly kind: SpanKind;
    readonly attributes: Attributes;
    readonly links?: Link[];
  },
  context: Context,
): Span {
  return (
    guarded(() => tracer.startSpan(name, options, context)) ??
    trace.wrapSpanContext(INVALID_SPAN_CONTEXT)
  );
}

/** What an error is called in `error.type`: its code, which ours and those of Node have, or its name. */
function typeOf(error: unknown): string {
  if (!(error instanceof Error)) return '_OTHER';
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && code !== '' ? code : error.name;
}

/** Records what was thrown; nothing is thrown from here, whatever that was. */
export function recordError(span: Span, error: unknown): void {
  guarded(() => {
    const isError = error instanceof Error;
    const message = isError ? error.message : String(error);
    span.setAttribute(attribute.errorType, typeOf(error));
    span.recordException(isError ? error : message);
    span.setStatus({ code: SpanStatusCode.ERROR, message });
  });
}

export const endSpan = (span: Span): void => {
  guarded(() => span.end());
};
