import type { Change } from '../../scripts/anchors.mjs';
import type { AnchoredChange } from '../../scripts/tree-copies.mjs';

export interface LuaCure {
  readonly cure: string;
  readonly test: string;
  readonly history: string;
}

export interface CodeCure {
  readonly cure: string;
  readonly test: string;
  readonly name: string;
  /** What becomes of the node behind the anchor that has the cure's name; `skip`, unless it says otherwise. */
  readonly change?: Change;
  /** All that has to be changed, where that is more, or at other anchors. */
  readonly changes?: readonly AnchoredChange[];
}

export const luaCures: readonly LuaCure[];
export const flagCure: { readonly cure: string; readonly test: string; readonly names: RegExp };
export const codeCures: readonly CodeCure[];
