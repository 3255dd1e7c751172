export interface LostWrites {
  readonly failovers: number;
  /** How many submissions and redrives were acknowledged, in all, and after the first failover. */
  readonly acknowledged: number;
  readonly after: number;
  readonly byKind: Readonly<Record<string, number>>;
  readonly refused: Readonly<Record<string, number>>;
  /** Those that were acknowledged and not complete in the end. */
  readonly lost: readonly { readonly kind: string; readonly id: string; readonly state: string }[];
}

export function loseWrites(options: {
  readonly failovers: number;
  readonly submitters: number;
  readonly seed?: number;
  readonly onFailover?: (n: number, behindMs: number, acknowledged: number) => void;
}): Promise<LostWrites>;
