import { type OptionTable, option, type WaitOptions, waitOptions } from '@piecework/protocol';
import { z } from 'zod';

export interface FailuresOptions extends WaitOptions {
  /** Only those whose error has this name, as 'TypeError'. @default all */
  readonly name?: string | undefined;
  /** Only those of these indexes, at most 100,000. @default all */
  readonly indexes?: readonly number[] | undefined;
  /** Whether payloads are read too. @default true */
  readonly payload?: boolean | undefined;
  /** The `cursor` of the last failure that was dealt with: goes on behind it. */
  readonly cursor?: string | undefined;
}

export const failuresOptions: OptionTable = {
  name: option.custom(z.string().min(1).max(128), 'the name of an error, 1 to 128 characters'),
  indexes: option.custom(
    z.array(z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)).min(1).max(100_000),
    'an array of 1 to 100000 whole numbers from 0 on',
  ),
  payload: option.boolean(true),
  cursor: option.custom(z.string().regex(/^f\d{1,15}$/), 'the cursor of a failure'),
  ...waitOptions,
};

/** The options after the check, defaults filled in. */
export type CheckedFailuresOptions = FailuresOptions & { readonly payload: boolean };
