import {
  checkOptions,
  encodePayload,
  InvalidOptionError,
  type JsonInput,
  type Jsonify,
  JsonText,
  LARGEST_VALUE_BYTES,
  NAME,
  type OptionTable,
  option,
  PayloadError,
} from '@piecework/protocol';
import type { HandlerContext, TaskHandler } from '@piecework/worker';
import type { StandardSchemaV1 } from '@standard-schema/spec';

/**
 * A task: a name that producers and workers share, with the types of its payload, as it is submitted, and of its
 * result, as the handler returns it. Both travel as JSON: what arrives has the type `Jsonify` of them.
 * With a schema (any library that speaks Standard Schema) a payload is checked when it is submitted,
 * and the handler gets what the schema makes of it. Payloads travel as JSON, so the schema also has to accept the
 * JSON form of a payload: `z.coerce.date()` and not `z.date()`. Otherwise the submission is refused.
 */
export interface Task<Payload, Result, Parsed = Jsonify<Payload>> {
  readonly name: string;
  readonly schema: StandardSchemaV1<Payload, Parsed> | undefined;
  /** Binds a handler to this task, for `new Worker({ handlers: [...] })`. @throws InvalidOptionError: no function */
  handler(run: (payload: Parsed, context: HandlerContext) => Result | Promise<Result>): TaskHandler;
  /** Only for the types. */
  readonly types?: { payload: Payload; result: Result };
}

/** The type of a task's name; for types that JSON cannot carry, the compiler refuses the name with this text. */
type NameFor<Payload, Result> = [Payload] extends [JsonInput<Payload>]
  ? [Result] extends [JsonInput<Result>]
    ? string
    : 'JSON cannot carry this result: it has a bigint, symbol or function, or an object with methods and no toJSON'
  : 'JSON cannot carry this payload: it has a bigint, symbol or function, or an object with methods and no toJSON';

/** A schema is an object or, as some libraries have it, a function. */
const isSchema = (value: unknown): boolean =>
  typeof (value as Partial<StandardSchemaV1> | null)?.['~standard']?.validate === 'function';

const taskOptions: OptionTable = {
  payload: option.custom(isSchema, 'a schema that speaks Standard Schema'),
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
export function defineTask<Payload, Result = unknown, Parsed = Jsonify<Payload>>(
  name: NameFor<Payload, Result>,
  options: { payload?: StandardSchemaV1<Payload, Parsed> | undefined } = {},
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
    handler: (run) => {
      if (typeof run !== 'function')
        throw new InvalidOptionError(`handler of task ${name}`, run, 'a function');
      return {
        task: name,
        run: async (payload: unknown, context: HandlerContext) =>
          run((schema ? await validate(schema, parsedOf(payload)) : payload) as Parsed, context),
      };
    },
  };
}

/** A schema checks the value of a JsonText. */
const parsedOf = (payload: unknown) => (payload instanceof JsonText ? payload.value : payload);

/** What the schema makes of a payload. @throws PayloadError that names the first issue */
async function validate<Input, Output>(
  schema: StandardSchemaV1<Input, Output>,
  payload: unknown,
): Promise<Output> {
  const result = await schema['~standard'].validate(payload);
  if (result.issues) throw wrong(result.issues);
  return result.value;
}

/**
 * Checks item `index` before it is submitted; returns no promise if the schema answers at once. The worker's schema
 * gets the JSON form of a payload: where that differs, as the text of a Date, the schema checks that form, too.
 */
export function check(
  schema: StandardSchemaV1,
  payload: unknown,
  index: number,
): void | Promise<void> {
  const ask = (value: unknown, cure: string, andThen: () => void | Promise<void>) => {
    const onResult = ({ issues }: StandardSchemaV1.Result<unknown>) => {
      if (issues) throw wrong(issues, { index, cure });
      return andThen();
    };
    const result = schema['~standard'].validate(value);
    return 'then' in result ? result.then(onResult) : onResult(result);
  };
  return ask(parsedOf(payload), '', () => {
    if (payload instanceof JsonText || isItsJson(payload, 0)) return;
    const text = encodePayload(payload, LARGEST_VALUE_BYTES, index);
    return ask(JSON.parse(text), TRAVELS, () => {});
  });
}

const TRAVELS =
  '; payloads travel as JSON, and the worker checks what arrives: let the schema accept that, as z.coerce.date() does';

/** Nesting up to which a payload is compared with its JSON form; deeper ones are encoded and checked. */
const DEEPEST = 100;

/** Whether a payload and its JSON form are the same to a schema. */
function isItsJson(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (depth === DEEPEST || 'toJSON' in value) return false;
  if (Array.isArray(value))
    return value.every((one) => one !== undefined && isItsJson(one, depth + 1));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  return Object.values(value).every((one) => isItsJson(one, depth + 1));
}

function wrong(
  issues: readonly StandardSchemaV1.Issue[],
  { index, cure = '' }: { readonly index?: number; readonly cure?: string } = {},
): PayloadError {
  const [issue] = issues;
  const path = (issue?.path ?? []).map((part) =>
    String(typeof part === 'object' ? part.key : part),
  );
  const where = path.map((part) => `.${part}`).join('');
  const message = `payload${where}: ${issue?.message}${cure}`;
  return new PayloadError(message, undefined, index);
}
