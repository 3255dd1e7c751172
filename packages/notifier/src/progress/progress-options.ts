import { type OptionTable, option, type WaitOptions, waitOptions } from '@piecework/protocol';

export interface ProgressOptions extends WaitOptions {
  /** Time between two reports, in ms, from 10 to 3600000. @default 1000 */
  readonly everyMs?: number | undefined;
}

export const progressOptions: OptionTable = {
  everyMs: option.ms(10, 3_600_000, 1_000),
  ...waitOptions,
};
