import { type OptionSpec, option } from './options.js';
import { shape } from './shapes.js';

/*
 * How the library tells a tracing system what it does. `@piecework/telemetry` implements this for OpenTelemetry; the
 * library itself depends on no tracing system.
 */

/**
 * The context of a trace as a request stores it for its workers: the fields of a propagator, such as `traceparent`,
 * `tracestate` and `baggage`. 'off': the submission was not sampled, and no span is made of its request.
 */
export type TraceContext = Readonly<Record<string, string>> | 'off';

/** What is known of a submission when it begins. */
export interface SubmissionAbout {
  readonly queue: string;
  readonly task: string | undefined;
}

/** What a submission became. */
export interface SubmissionMade {
  readonly id: string;
  readonly generation: number;
  /** How many sub-requests it added; undefined for a request that was opened. */
  readonly total?: number | undefined;
  readonly created: boolean;
}

/** What all handler runs of one worker and one request have in common. */
export interface RunsAbout {
  readonly queue: string;
  /** '' for none. */
  readonly task: string;
  readonly worker: string;
}

/** One run of a handler. */
export interface RunAbout {
  readonly requestId: string;
  readonly index: number;
  readonly attempt: number;
  readonly crashes: number;
  /** Id of its entry: 'generation-index'. */
  readonly entry: string;
}

/**
 * How a run ended. 'retried': it failed, and another attempt follows · 'failed': for good · 'returned': given back,
 * which counts as no attempt · 'ignored': it ended after its outcome was no longer wanted.
 */
export type RunEnd = 'succeeded' | 'retried' | 'failed' | 'returned' | 'ignored';

/** The span of one handler run. */
export interface RunSpan {
  /** Calls the handler with the span as the active one, and returns what it returns. */
  within<T>(handler: () => T): T;
  /** Called once. `error`: what the attempt failed with. */
  end(how: RunEnd, error?: unknown): void;
}

/** Makes the spans of the handler runs of one request. */
export interface Runs {
  /** undefined: this run is not traced. */
  begin(run: RunAbout): RunSpan | undefined;
}

/** What a wait for a completion is about. */
export interface CompletionAbout {
  readonly queue: string;
  readonly requestId: string;
  /** Reads what the submission stored; called only if the wait is traced. */
  readonly context: () => Promise<TraceContext | undefined>;
}

/** How a request ended, as far as a span says it. */
export interface CompletionMade {
  readonly status: string;
  readonly generation: number;
  readonly counts: { readonly total: number; readonly failed: number; readonly cancelled: number };
}

/** The option `telemetry` of `Piecework` and `Worker`. None of its methods may throw an error of its own. */
export interface Telemetry {
  /** Runs a submission in a span; `send` gets what the request is to store. Rejects with what `send` rejects. */
  submit<T extends SubmissionMade>(
    about: SubmissionAbout,
    send: (context: TraceContext | undefined) => Promise<T>,
  ): Promise<T>;
  /** `context`: what the request stores; undefined: it was submitted without telemetry. */
  runs(about: RunsAbout, context: TraceContext | undefined): Runs;
  /** Waits for a completion in a span. Rejects with what `wait` rejects. */
  completion<T extends CompletionMade>(about: CompletionAbout, wait: () => Promise<T>): Promise<T>;
}

/** Most bytes of JSON that a request stores of the context of its trace. */
export const TRACE_BYTES = 8_192;

export const telemetryOption: OptionSpec = option.custom(
  shape.object({ submit: shape.callable, runs: shape.callable, completion: shape.callable }),
  'new OpenTelemetry() of @piecework/telemetry, or another object of type Telemetry',
);
