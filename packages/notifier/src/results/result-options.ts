import {
  type OptionTable,
  option,
  shape,
  type WaitOptions,
  waitOptions,
} from '@piecework/protocol';

export interface ResultsOptions extends WaitOptions {
  /**
   * 'completion': as they were settled (of what one worker settled in one call, successes first). 'index': in
   * the order of the items. @default 'completion'
   */
  readonly order?: 'completion' | 'index' | undefined;
  /** Whether failed sub-requests are yielded too. @default false */
  readonly failed?: boolean | undefined;
  /** The `cursor` of the last item that was processed, of the same order: continues behind it. @default none */
  readonly cursor?: string | undefined;
  /**
   * For `order: 'index'`: about how many bytes of results that came early are kept in memory. Of a result that
   * does not fit only the position is kept, 8 bytes, and it is read again when its turn comes.
   * Between 1 and 1073741824. @default 8388608
   */
  readonly bufferBytes?: number | undefined;
  /**
   * Whether each result is wanted as soon as possible while the request runs. Workers then settle each outcome within
   * 4 ms instead of gathering several for up to their `settleDelayMs` (80 ms). That takes Redis up to twice the time
   * for each if the workers have few slots. `false` suits a reader that collects. @default true
   */
  readonly live?: boolean | undefined;
  /** Whether each value is given as a JsonText, the stored text unchanged, instead of parsed. @default false */
  readonly jsonText?: boolean | undefined;
  /**
   * Whether the iteration waits for the end of the request. `false`: it ends behind the last result that is there now,
   * and in the order 'index' leaves out what has none yet; `outcome` stays undefined unless the request is complete.
   * @default true
   */
  readonly wait?: boolean | undefined;
}

/** As they are without `failed`: each item is a success, and has a `value`. */
export type SuccessesOptions = ResultsOptions & { readonly failed?: false | undefined };

export const resultsOptions: OptionTable = {
  order: option.word('completion', 'index'),
  failed: option.boolean(false),
  cursor: option.custom(
    shape.text(0, Number.POSITIVE_INFINITY),
    'the cursor of an item of the same order',
  ),
  bufferBytes: option.integer(1, 1_073_741_824, 8_388_608),
  live: option.boolean(true),
  jsonText: option.boolean(false),
  wait: option.boolean(true),
  ...waitOptions,
};

/** The options after the check, defaults filled in. */
export type CheckedResultsOptions = Required<
  Pick<ResultsOptions, 'order' | 'failed' | 'bufferBytes' | 'live' | 'jsonText' | 'wait'>
> &
  Pick<ResultsOptions, 'cursor'> &
  WaitOptions;
