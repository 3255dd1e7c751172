interface Cure {
  readonly cure: string;
}
export const luaCures: readonly Cure[];
export const codeCures: readonly Cure[];
export const flagCure: Cure;
