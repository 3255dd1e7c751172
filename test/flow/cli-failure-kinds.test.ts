import { describe, expect, test } from 'vitest';
import { failureKinds, kindLine } from '../../packages/cli/dist/output/failure-kinds.js';

/** The kinds of failures of which programs, or a handler, said this. */
async function kindsOf(name: string, messages: readonly string[]) {
  const failures = messages.map((message, index) => ({
    ...{ index, attempts: 1, crashes: 0, cursor: '', payload: undefined },
    error: { name, message },
  }));
  async function* each() {
    yield* failures;
  }
  const kinds = await failureKinds(each());
  return kinds.map(({ message, count }) => [count, message]);
}

describe('failures of a run', () => {
  test('that timed out are shown without the name of one of them', () => {
    const message = 'attempt 1 of sub-request 0 of run-x: not within 500 ms';
    const kind = { name: 'TimeoutError', message, count: 200, indexes: [0, 1, 2] };
    expect(kindLine(kind, 80)).toBe('  200 × TimeoutError: not within 500 ms (index 0, 1, 2, …)');
  });

  test('of one exit code are distinguished by what the programs wrote, the most frequent first', async () => {
    expect(
      await kindsOf('ExitError', [
        'exit code 1: disk full',
        'exit code 1: cat: /tmp/a 1.txt: No such file or directory',
        'exit code 1: cat: apples: No such file or directory',
        'exit code 1: cat: notes: Permission denied',
        'exit code 2: cat: pears: No such file or directory',
        'exit code 1: cat: b.txt: No such file or directory',
        'exit code 1: curl: (6) Could not resolve host: one.example',
        'exit code 1: curl: (6) Could not resolve host: two.example',
        'exit code 1',
      ]),
    ).toEqual([
      [3, 'exit code 1: cat: /tmp/a 1.txt: No such file or directory'],
      [2, 'exit code 1: curl: (6) Could not resolve host: one.example'],
      [1, 'exit code 1: disk full'],
      [1, 'exit code 1: cat: notes: Permission denied'],
      [1, 'exit code 2: cat: pears: No such file or directory'],
      [1, 'exit code 1'],
    ]);
  });

  test('of a handler are of one kind when they differ only in numbers, paths and quoted words', async () => {
    expect(
      await kindsOf('Error', [
        "no user 'ann' in /var/db/7",
        "no user 'bob' in /etc/x",
        'row 12 is bad',
        'row 3 is bad',
        'row 3 is odd',
      ]),
    ).toEqual([
      [2, "no user 'ann' in /var/db/7"],
      [2, 'row 12 is bad'],
      [1, 'row 3 is odd'],
    ]);
  });

  test('of very many kinds are counted by exit code, without a message of one of them', async () => {
    const word = (i: number) => `${String.fromCharCode(97 + (i % 26))}${'x'.repeat(i)}`;
    const messages = Array.from({ length: 150 }, (_, i) => `exit code 3: ${word(i)}`);
    const kinds = await kindsOf('ExitError', messages);
    expect(kinds).toHaveLength(101);
    expect(kinds[0]).toEqual([50, 'exit code 3, with other messages']);
  });
});
