import { checkOptions, type OptionTable, option } from '@piecework/protocol';
import { defineTask, type HandlerContext, type Task, type TaskHandler } from 'piecework';

/** One call of a fake task. */
export interface FakeCall<Payload, Result> {
  readonly payload: Payload;
  readonly requestId: string;
  readonly index: number;
  readonly attempt: number;
  /** What the handler did; undefined while it runs. */
  readonly ended:
    | { readonly status: 'succeeded'; readonly value: Result }
    | { readonly status: 'failed'; readonly error: unknown }
    | undefined;
}

export interface FailOptions<Payload> {
  /** How many calls fail. @default Infinity */
  readonly times?: number | undefined;
  /** Of which payloads. @default all */
  readonly when?: ((payload: Payload) => boolean) | undefined;
}

const failOptions: OptionTable = {
  times: option.custom(
    (value) => value === Number.POSITIVE_INFINITY || (Number.isInteger(value) && Number(value) > 0),
    'a whole number from 1, or Infinity',
    Number.POSITIVE_INFINITY,
  ),
  when: option.custom((value) => typeof value === 'function', 'a function of the payload'),
};

type Run<Payload, Result> = (payload: Payload, context: HandlerContext) => Result | Promise<Result>;

/**
 * A handler for tests: records each call, and does what the test says. Pass `handler` to a worker or to `drain`.
 *
 * ```ts
 * const resize = fakeTask<string, number>('resize', (path) => path.length);
 * resize.fails(new Error('disk full'), { times: 1 });
 * await kit.drain(request, { handlers: [resize.handler] });
 * ```
 */
export class FakeTask<Payload, Result> {
  readonly handler: TaskHandler;
  readonly #calls: FakeCall<Payload, Result>[] = [];
  readonly #usual: Run<Payload, Result>;
  #run: Run<Payload, Result>;
  #failing: { error: unknown; left: number; when: (payload: Payload) => boolean }[] = [];

  /** @internal */
  constructor(bind: (run: Run<Payload, Result>) => TaskHandler, run: Run<Payload, Result>) {
    this.#usual = run;
    this.#run = run;
    this.handler = bind((payload, context) => this.#call(payload, context));
  }

  /** All calls since the last `reset`, in the order of their start. */
  get calls(): readonly FakeCall<Payload, Result>[] {
    return this.#calls;
  }

  /** The payloads of `calls`. */
  get payloads(): readonly Payload[] {
    return this.#calls.map(({ payload }) => payload);
  }

  /** From here on calls run this instead. */
  runs(run: Run<Payload, Result>): this {
    this.#run = run;
    return this;
  }

  /** From here on calls return this value. */
  returns(value: Result): this {
    return this.runs(() => value);
  }

  /** Lets calls throw `error`. Several of these are asked in their order. @throws InvalidOptionError */
  fails(error: unknown, options: FailOptions<Payload> = {}): this {
    const { times, when = () => true } = checkOptions<
      FailOptions<Payload> & { readonly times: number }
    >(failOptions, options);
    this.#failing.push({ error, left: times, when });
    return this;
  }

  /** Forgets the calls and what `runs`, `returns` and `fails` said. */
  reset(): void {
    this.#calls.length = 0;
    this.#failing = [];
    this.#run = this.#usual;
  }

  async #call(payload: Payload, context: HandlerContext): Promise<Result> {
    const { requestId, index, attempt } = context;
    const call: {
      -readonly [Key in keyof FakeCall<Payload, Result>]: FakeCall<Payload, Result>[Key];
    } = { payload, requestId, index, attempt, ended: undefined };
    this.#calls.push(call);
    try {
      const failing = this.#failing.find(({ left, when }) => left > 0 && when(payload));
      if (failing) {
        failing.left -= 1;
        throw failing.error;
      }
      const value = await this.#run(payload, context);
      call.ended = { status: 'succeeded', value };
      return value;
    } catch (error) {
      call.ended = { status: 'failed', error };
      throw error;
    }
  }
}

/**
 * A fake of a task, by its name or as `defineTask` returned it: with a schema, calls get what the schema makes of a
 * payload. `run` is what it does while the test says nothing else. @default run returns undefined
 * @throws InvalidOptionError
 */
export function fakeTask<Payload = unknown, Result = unknown>(
  // biome-ignore lint/suspicious/noExplicitAny: what is submitted may be of another type than what the schema makes.
  task: string | Task<any, Result, Payload>,
  run: Run<Payload, Result> = () => undefined as Result,
): FakeTask<Payload, Result> {
  // biome-ignore lint/suspicious/noExplicitAny: the type arguments of a name say what arrives, as those of a task do.
  const { handler } = typeof task === 'string' ? defineTask<any, any, Payload>(task) : task;
  return new FakeTask<Payload, Result>(handler, run);
}
