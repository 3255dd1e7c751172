export interface LuaCure {
  readonly cure: string;
  readonly test: string;
  readonly history: string;
}

export interface CodeCure {
  readonly cure: string;
  readonly test: string;
  readonly name: string;
  readonly code: string;
  readonly edits: readonly { readonly from: string; readonly to: string }[];
}

export const luaCures: readonly LuaCure[];
export const flagCure: { readonly cure: string; readonly test: string; readonly names: RegExp };
export const codeCures: readonly CodeCure[];
