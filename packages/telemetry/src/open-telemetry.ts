import {
  type Attributes,
  type Context,
  context,
  type Span,
  SpanKind,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import {
  type CompletionAbout,
  type CompletionMade,
  checkOptions,
  type OptionTable,
  option,
  type Runs,
  type RunsAbout,
  type SubmissionAbout,
  type SubmissionMade,
  shape,
  type Telemetry,
  type TraceContext,
} from '@piecework/protocol/contract';
import { attribute, common } from './attributes.js';
import { carrierOf, extracted } from './carrier.js';
import { guarded } from './guarded.js';
import { runsOf } from './runs.js';
import { endSpan, recordError, startSpan } from './spans.js';

export interface OpenTelemetryOptions {
  /** Makes the spans. @default the tracer 'piecework' of the global provider */
  readonly tracer?: Tracer | undefined;
  /**
   * 'linked': each handler run is a trace of its own, with a link to its submission. 'children': it is a child of the
   * submission, in the same trace, and has the link too; for requests with few sub-requests. @default 'linked'
   */
  readonly runs?: 'linked' | 'children' | undefined;
}

const openTelemetryOptions: OptionTable = {
  tracer: option.custom(shape.object({ startSpan: shape.callable }), 'a Tracer of OpenTelemetry'),
  runs: option.word('linked', 'children'),
};

/**
 * Traces submissions, handler runs and completions: the option `telemetry` of `Piecework` and `Worker`.
 *
 * ```ts
 * const telemetry = new OpenTelemetry();
 * const pw = new Piecework({ redis, telemetry });
 * const worker = new Worker({ redis, handler, telemetry });
 * ```
 *
 * It uses only the API of OpenTelemetry: without an SDK in the process nothing is recorded.
 */
export class OpenTelemetry implements Telemetry {
  readonly #tracer: Tracer;
  readonly #asChildren: boolean;

  /** @throws InvalidOptionError */
  constructor(options: OpenTelemetryOptions = {}) {
    const { tracer, runs } = checkOptions<OpenTelemetryOptions>(openTelemetryOptions, options);
    // A tracer of the global provider may be had before that is registered.
    this.#tracer = tracer ?? trace.getTracer('piecework');
    this.#asChildren = runs === 'children';
  }

  async submit<T extends SubmissionMade>(
    { queue, task }: SubmissionAbout,
    send: (context: TraceContext | undefined) => Promise<T>,
  ): Promise<T> {
    const attributes = {
      ...common(queue, 'submit', 'send'),
      ...(task === undefined ? {} : { [attribute.task]: task }),
    };
    return this.#within(
      `submit ${queue}`,
      { kind: SpanKind.PRODUCER, attributes },
      async (span, active) => {
        const made = await send(guarded(() => carrierOf(active, span)));
        span.setAttributes(submittedAttributes(made));
        return made;
      },
    );
  }

  runs(about: RunsAbout, stored: TraceContext | undefined): Runs {
    return runsOf(this.#tracer, about, stored, this.#asChildren);
  }

  async completion<T extends CompletionMade>(
    { queue, requestId, context: read }: CompletionAbout,
    wait: () => Promise<T>,
  ): Promise<T> {
    const attributes = { ...common(queue, 'complete'), [attribute.conversation]: requestId };
    return this.#within(
      `complete ${queue}`,
      { kind: SpanKind.CLIENT, attributes },
      async (span) => {
        const link = async () => {
          if (!span.isRecording()) return;
          const stored = await read().catch(() => undefined);
          if (typeof stored !== 'object') return;
          const origin = trace.getSpanContext(extracted(context.active(), stored));
          if (origin) span.addLink({ context: origin });
        };
        try {
          const made = await wait();
          span.setAttributes(completionAttributes(made));
          return made;
        } finally {
          await link();
        }
      },
    );
  }

  /** Calls `work` in a new span, and ends the span with it. */
  async #within<T>(
    name: string,
    options: { readonly kind: SpanKind; readonly attributes: Attributes },
    work: (span: Span, active: Context) => Promise<T>,
  ): Promise<T> {
    const span = startSpan(this.#tracer, name, options, context.active());
    const active = trace.setSpan(context.active(), span);
    try {
      return await context.with(active, () => work(span, active));
    } catch (error) {
      recordError(span, error);
      throw error;
    } finally {
      endSpan(span);
    }
  }
}

const submittedAttributes = ({ id, generation, total, created }: SubmissionMade): Attributes => ({
  [attribute.conversation]: id,
  [attribute.generation]: generation,
  [attribute.created]: created,
  ...(total === undefined ? {} : { [attribute.batch]: total }),
});

const completionAttributes = ({ status, generation, counts }: CompletionMade): Attributes => ({
  [attribute.status]: status,
  [attribute.generation]: generation,
  [attribute.total]: counts.total,
  [attribute.failed]: counts.failed,
  [attribute.cancelled]: counts.cancelled,
});
