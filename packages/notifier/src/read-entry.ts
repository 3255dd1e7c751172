/** One outcome. `text`: the encoded result, or the error as JSON where errors are wanted. */
export interface ReadItem {
  readonly index: number;
  /** 'redriven': it had failed, and that failure was taken back. */
  readonly kind: 'succeeded' | 'failed' | 'redriven';
  readonly text: string;
}

/** One entry of the results stream: what one settling recorded. */
export interface ReadEntry {
  /** `<generation>-<number>`, rising. */
  readonly position: string;
  readonly items: readonly ReadItem[];
}
