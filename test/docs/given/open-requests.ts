export function* rows(): Generator<{ row: number }> {
  for (let row = 0; row < 3; row += 1) yield { row };
}
export const lastCursor: string | undefined = undefined;
export const save = async (_index: number, _value: unknown, _cursor: string): Promise<void> => {};
