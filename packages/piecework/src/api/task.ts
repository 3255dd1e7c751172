import {
  checkOptions,
  InvalidOptionError,
  NAME,
  type OptionTable,
  option,
  PayloadError,
} from '@piecework/protocol';
import type { HandlerContext, TaskHandler } from '@piecework/worker';
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { z } from 'zod';

/**
 * A task: a name that producers and workers share, with the types of its payload and its result.
 * With a schema (any library that speaks Standard Schema) a payload is checked when it is submitted,
 * and the handler gets what the schema makes of it.
 */
export interface Task<Payload, Result, Parsed = Payload> {
  readonly name: string;
  readonly schema: StandardSchemaV1<Payload, Parsed> | undefined;
  /** Binds a handler to this task, for `new Worker({ handlers: [...] })`. */
  handler(run: (payload: Parsed, context: HandlerContext) => Result | Promise<Result>): TaskHandler;
  /** Only for the types. */
  readonly types?: { payload: Payload; result: Result };
}

/** A schema is an object or, as some libraries have it, a function. */
const isSchema = (value: unknown): boolean =>
  typeof (value as Partial<StandardSchemaV1> | null)?.['~standard']?.validate === 'function';

const taskOptions: OptionTable = {
  payload: option.custom(z.custom(isSchema), 'a schema that speaks Standard Schema'),
};

/**
 * Defines a task. `payload` is the schema of its payloads.
 *
 * ```ts
 * const census = defineTask<string, Stats>('census');
 * ```
 * @throws InvalidOptionError when the name is not 1 to 128 of A-Z a-z 0-9 _ . : -, or an option is unknown or
 *   not allowed
 */
export function defineTask<Payload, Result = unknown, Parsed = Payload>(
  name: string,
  options: { payload?: StandardSchemaV1<Payload, Parsed> } = {},
): Task<Payload, Result, Parsed> {
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw new InvalidOptionError('task', name, '1 to 128 of A-Z a-z 0-9 _ . : -');
  }
  const { payload: schema } = checkOptions<{ payload?: StandardSchemaV1<Payload, Parsed> }>(
    taskOptions,
    options,
  );
  return {
    name,
    schema,
    handler: (run) => ({
      task: name,
      run: async (payload: unknown, context: HandlerContext) =>
        run((schema ? await validate(schema, payload) : payload) as Parsed, context),
    }),
  };
}

/** What the schema makes of a payload. @throws PayloadError that names the first thing that is wrong */
async function validate<Input, Output>(
  schema: StandardSchemaV1<Input, Output>,
  payload: unknown,
): Promise<Output> {
  const result = await schema['~standard'].validate(payload);
  if (result.issues) throw wrong(result.issues);
  return result.value;
}

/** The same before it is submitted, for item `index`; no promise where the schema answers at once. */
export function check(
  schema: StandardSchemaV1,
  payload: unknown,
  index: number,
): void | Promise<void> {
  const expectRight = ({ issues }: StandardSchemaV1.Result<unknown>) => {
    if (issues) throw wrong(issues, index);
  };
  const result = schema['~standard'].validate(payload);
  return 'then' in result ? result.then(expectRight) : expectRight(result);
}

function wrong(issues: readonly StandardSchemaV1.Issue[], index?: number): PayloadError {
  const [issue] = issues;
  const path = (issue?.path ?? []).map((part) =>
    String(typeof part === 'object' ? part.key : part),
  );
  const message = `payload${path.map((part) => `.${part}`).join('')}: ${issue?.message}`;
  return new PayloadError(message, undefined, index);
}
