// What an SDK of OpenTelemetry registers for a process, here by hand: in your service, NodeSDK of
// @opentelemetry/sdk-node does this, and sends the spans to a collector.
import { context, propagation } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  CompositePropagator,
  W3CBaggagePropagator,
  W3CTraceContextPropagator,
} from '@opentelemetry/core';
import { BasicTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { OpenTelemetry } from '@piecework/telemetry';

/** Calls `take` with each span that has ended, as plain data. */
export function telemetry(take) {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(
    new CompositePropagator({
      propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()],
    }),
  );
  const exporter = {
    export(spans, done) {
      for (const span of spans) take(plain(span));
      done({ code: 0 });
    },
    shutdown: async () => {},
  };
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  return new OpenTelemetry({ tracer: provider.getTracer('traces') });
}

const plain = (span) => ({
  id: span.spanContext().spanId,
  parent: span.parentSpanContext?.spanId,
  links: span.links.map((link) => link.context.spanId),
  name: span.name,
  startedAt: span.startTime[0] * 1e3 + span.startTime[1] / 1e6,
  ms: span.duration[0] * 1e3 + span.duration[1] / 1e6,
  error: span.status.code === 2 ? span.status.message : undefined,
  pid: process.pid,
  ...span.attributes,
});
