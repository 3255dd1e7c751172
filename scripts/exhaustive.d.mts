export const exhaustive: Readonly<Record<string, string>>;
export function isExhaustive(path: string): boolean;
