import { context, propagation } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  CompositePropagator,
  W3CBaggagePropagator,
  W3CTraceContextPropagator,
} from '@opentelemetry/core';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { OpenTelemetry, type OpenTelemetryOptions } from '@piecework/telemetry';
import { afterAll, beforeAll } from 'vitest';

/** For the tests of one file: contexts and their propagation, as an SDK registers them for a process. */
export function registerContexts(): void {
  beforeAll(() => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    propagation.setGlobalPropagator(
      new CompositePropagator({
        propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()],
      }),
    );
  });
  afterAll(() => {
    context.disable();
    propagation.disable();
  });
}

/** Telemetry whose spans are kept in memory. */
export function recording(
  options: Omit<OpenTelemetryOptions, 'tracer'> & {
    readonly sampler?: Sampler;
    readonly processor?: SpanProcessor;
  } = {},
) {
  const { sampler, processor, ...rest } = options;
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({
    spanProcessors: [new SimpleSpanProcessor(exporter), ...(processor ? [processor] : [])],
    ...(sampler ? { sampler } : {}),
  });
  const tracer = provider.getTracer('test');
  /** The finished spans whose names begin so, in the order of their ends. */
  const spans = (name = ''): ReadableSpan[] =>
    exporter.getFinishedSpans().filter((span) => span.name.startsWith(name));
  return { telemetry: new OpenTelemetry({ tracer, ...rest }), tracer, spans };
}
