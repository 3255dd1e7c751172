import {
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  diag,
  propagation,
  type Span,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { TRACE_BYTES, type TraceContext } from '@piecework/protocol/contract';

/** What the state of a request carries of a context, and back. By the global propagator, whichever it is. */

let warned = false;

/** Says a thing once in this process. */
function warnOnce(text: string): void {
  if (warned) return;
  warned = true;
  diag.warn(`piecework: ${text}`);
}

export const isSampled = (span: Span): boolean =>
  (span.spanContext().traceFlags & TraceFlags.SAMPLED) !== 0;

/**
 * What a request stores of the submission in `span`. 'off' if it is not sampled and there is no baggage: then all
 * such requests store the same, and small ones still go to the server together. undefined if nothing is traced here.
 */
export function carrierOf(context: Context, span: Span): TraceContext | undefined {
  if (!trace.isSpanContextValid(span.spanContext())) return undefined;
  const hasBaggage = (propagation.getBaggage(context)?.getAllEntries().length ?? 0) > 0;
  if (!isSampled(span) && !hasBaggage) return 'off';
  const carrier: Record<string, string> = {};
  propagation.inject(context, carrier, defaultTextMapSetter);
  if (Object.keys(carrier).length === 0) {
    warnOnce('no propagator is registered, so handler runs have no link to their submission');
    return undefined;
  }
  return bounded(carrier);
}

/** Leaves the baggage out of what would be too much for the state of a request. */
function bounded(carrier: Record<string, string>): TraceContext | undefined {
  const size = (of: Record<string, string>) => Buffer.byteLength(JSON.stringify(of));
  if (size(carrier) <= TRACE_BYTES) return carrier;
  const { baggage: _, ...rest } = carrier;
  warnOnce(
    `the baggage of a submission is left out: with it the context exceeds ${TRACE_BYTES} bytes`,
  );
  return size(rest) <= TRACE_BYTES ? rest : undefined;
}

/** `base` with what a request stored. */
export const extracted = (base: Context, carrier: Readonly<Record<string, string>>): Context =>
  propagation.extract(base, carrier, defaultTextMapGetter);
