import { QueueCommands } from '@piecework/protocol';
import { describe, expect } from 'vitest';
import { test } from '../support/command-line.js';

describe('piecework submit --dedupe-key', () => {
  test('takes the request that is there, and refuses what does not go with it', async ({
    commandLine,
  }) => {
    const { run, file, queue, connection } = commandLine;
    const input = await file('items.txt', 'a\nb\n');
    const key = `${queue}.key`;
    const submit = async (...more: string[]) =>
      run('submit', '--input', input, '--json', '--dedupe-key', key, ...more);
    const [first, second] = [
      await submit('--dedupe-period-ms', '600000'),
      await submit('--dedupe-period-ms', '600000'),
    ];
    expect(first).toMatchObject({ code: 0 });
    expect(second).toMatchObject({ code: 0, stdout: first.stdout });
    const other = await submit('--limit', '3');
    expect(other.code).toBe(1);
    expect(other.stderr).toContain('"EXISTS"');
    expect(other.stderr).toContain('limit');
    const named = await submit('--id', 'x');
    expect(named.code).toBe(2);
    expect(named.stderr).toContain('--dedupe-key');
    const alone = await run('submit', '--input', input, '--dedupe-period-ms', '5');
    expect(alone.code).toBe(2);
    const name = new QueueCommands(connection, queue).keys.dedupe(key);
    expect(await connection.client.unlink(name)).toBe(1);
  });
});
