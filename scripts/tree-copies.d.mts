import type { Change } from './anchors.mjs';

export interface AnchoredChange {
  /** The name in its anchor. */
  readonly cure: string;
  readonly change?: Change;
}

export class TreeCopies {
  next(): string;
  removeAll(): void;
}
export function anchored(): Map<string, string[]>;
export function builtWith(cure: string): string;
