export interface Row {
  readonly text: string;
}

export async function* rowsOf(_file: string, _options: { from: number }): AsyncGenerator<Row> {
  yield { text: 'a row' };
}

export const save = async (_record: Row): Promise<void> => {};
