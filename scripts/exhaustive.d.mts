export const exhaustive: Readonly<Record<string, string>>;
export function isExhaustive(path: string): boolean;
export function filesOfPart(files: readonly string[], every: number, part: number): string[];
