export interface Change {
  readonly limit: number;
  readonly askedNs: bigint;
  readonly doneNs: bigint;
}

export interface Judged {
  readonly runs: number;
  /** Runs whose signal aborted, and runs that a kill cut off. */
  readonly zombies: number;
  readonly killed: number;
  /** Of each change: starts under it for certain, the most at once then, and how many above it. */
  readonly figures: readonly {
    readonly limit: number;
    readonly starts: number;
    readonly most: number;
    readonly above: number;
  }[];
  readonly violations: readonly string[];
}

export function judgeStarts(
  journals: readonly { readonly text: string; readonly endNs: bigint }[],
  limits: readonly Change[],
): Judged;
