/** Values of the flags that say what the items are. */
export interface InputValues {
  input?: readonly string[];
  split?: string;
  /** Names with dots between them. */
  jsonPath?: string;
  batch?: number;
  binary: boolean;
  /** Whether there may be no item at all. */
  allowEmpty?: boolean;
  readonly maxPayloadBytes?: number;
  /** As they were typed. */
  readonly csvDelimiter?: string;
  readonly csvHeader?: string;
  /** The files that are written: none of them may be an input. */
  out?: string;
  outDir?: string;
  joblog?: string;
  badRows?: string;
  json?: boolean;
}
