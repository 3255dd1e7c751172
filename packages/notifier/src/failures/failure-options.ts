import {
  type OptionTable,
  option,
  shape,
  type WaitOptions,
  waitOptions,
} from '@piecework/protocol/contract';

export interface FailuresOptions extends WaitOptions {
  /** Only failures whose error has this name, as 'TypeError', 1 to 128 characters. @default all */
  readonly name?: string | undefined;
  /** Only failures of these indexes, 1 to 100,000 of them. @default all */
  readonly indexes?: readonly number[] | undefined;
  /** Whether to read the payloads too. @default true */
  readonly payload?: boolean | undefined;
  /** Whether each payload is given as a JsonText, the stored text unchanged, instead of parsed. @default false */
  readonly jsonText?: boolean | undefined;
  /** The `cursor` of the last failure that was processed: continues behind it. @default none */
  readonly cursor?: string | undefined;
}

export const failuresOptions: OptionTable = {
  name: option.custom(shape.text(1, 128), 'the name of an error, 1 to 128 characters'),
  indexes: option.custom(
    shape.array(shape.integer(0, Number.MAX_SAFE_INTEGER), 1, 100_000),
    'an array of 1 to 100000 whole numbers from 0 on',
  ),
  payload: option.boolean(true),
  jsonText: option.boolean(false),
  cursor: option.custom(shape.match(/^f\d{1,15}$/), 'the cursor of a failure'),
  ...waitOptions,
};

/** The options of `failureGroups`. */
export type FailureGroupsOptions = WaitOptions & Pick<FailuresOptions, 'jsonText'>;

export const failureGroupsOptions: OptionTable = {
  jsonText: option.boolean(false),
  ...waitOptions,
};

/** The options after the check, defaults filled in. */
export type CheckedFailuresOptions = FailuresOptions & {
  readonly payload: boolean;
  readonly jsonText: boolean;
};
