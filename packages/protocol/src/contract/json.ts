/*
 * The types of values that travel as JSON. Own types rather than type-fest's: its versions that are kept up need newer
 * compilers than TypeScript 5.4, and its `Jsonify` gives `{}` for a Map, which `encodePayload` refuses.
 */

/** A value of this type as it comes back: what `JSON.parse(JSON.stringify(value))` returns. A Date is a string, … */
export type Jsonify<T> = unknown extends T
  ? T
  : T extends Same
    ? T
    : T extends { toJSON(...args: never[]): infer Json }
      ? Jsonify<Json>
      : T extends NotJson
        ? never
        : T extends readonly unknown[]
          ? JsonifyList<T>
          : JsonifyObject<T>;

/**
 * `T` itself where JSON can carry it all, so that `[T] extends [JsonInput<T>]` is true. Where JSON cannot carry a part
 * of it, as a bigint, a symbol, a function or an object with methods and without `toJSON`, that part is `never`.
 */
export type JsonInput<T> = unknown extends T
  ? T
  : T extends Same
    ? T
    : T extends { toJSON(...args: never[]): infer Json }
      ? [Json] extends [JsonInput<Json>]
        ? T
        : never
      : T extends NotJson
        ? never
        : T extends readonly unknown[]
          ? readonly JsonInput<T[number]>[]
          : { [Key in keyof T]: JsonInput<T[Key]> };

/** A result may be `undefined`, and a handler may return nothing. */
// biome-ignore lint/suspicious/noConfusingVoidType: the result type of such a handler
type Same = string | number | boolean | null | undefined | void;

// biome-ignore lint/complexity/noBannedTypes: any function or class
type NotJson = bigint | symbol | Function;

/** In an array, JSON has null for undefined. An array is no mapped type: such a type of a recursive one has no end. */
type JsonifyList<T extends readonly unknown[]> = number extends T['length']
  ? T extends unknown[]
    ? Element<T[number]>[]
    : readonly Element<T[number]>[]
  : { [Key in keyof T]: Element<T[Key]> };

type Element<T> = unknown extends T ? T : T extends undefined ? null : Jsonify<T>;

/** Properties that may be undefined may be missing. */
type JsonifyObject<T> = Flat<
  { [Key in keyof T as Name<T, Key, false>]: Jsonify<T[Key]> } & {
    [Key in keyof T as Name<T, Key, true>]?: Jsonify<Exclude<T[Key], undefined>>;
  }
>;

type Flat<T> = { [Key in keyof T]: T[Key] };

/** The key if JSON has the property, and it may be missing or not, as asked. */
type Name<T, Key extends keyof T, MayBeMissing extends boolean> = Key extends symbol
  ? never
  : MayBeMissing extends IsMissing<T[Key]>
    ? Key
    : never;

/** Whether a property of this type may be missing in JSON; never: it always is. */
type IsMissing<T> = unknown extends T
  ? false
  : [T] extends [NotJson | undefined]
    ? never
    : undefined extends T
      ? true
      : false;
