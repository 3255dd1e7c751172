export const SINCE: readonly (readonly [version: string, names: readonly string[]])[];
export const OPTION_SINCE: Readonly<Record<string, Readonly<Record<string, string>>>>;
