import { Producer } from '@piecework/producer';
import { QueueCommands } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import { Admin } from 'piecework';
import { describe, expect } from 'vitest';
import { test } from '../support/command-line.js';

describe('piecework submit --dedupe-key', () => {
  test('takes the existing request, and refuses flags that do not match it', {
    timeout: 180_000,
  }, async ({ commandLine }) => {
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

describe('piecework run --dedupe-key', () => {
  test('runs its own request, and does not touch the request of another run', {
    timeout: 180_000,
  }, async ({ commandLine }) => {
    const { run, file, queue, redis, connection } = commandLine;
    const input = await file('items.txt', 'a\nb\n');
    const key = `${queue}.key`;
    const start = () =>
      run('run', '--input', input, '--exec', 'cat', '--json', '--dedupe-key', key);
    await using producer = new Producer({ redis, queue });
    const other = await producer.open({ dedupe: { key }, results: 'discard' });
    const refused = await start();
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('"EXISTS"');
    const request = new RequestCommands(connection, other.id);
    expect(await request.state()).toMatchObject({ status: 'open', total: 0 });
    await other.cancel();
    await new Admin({ redis: connection, queue }).drop(other.id);
    // What a run leaves behind takes nothing from the next.
    for (const ended of [await start(), await start()]) {
      expect(ended).toMatchObject({ code: 0 });
      expect(JSON.parse(ended.stdout)).toMatchObject({ id: other.id, counts: { succeeded: 2 } });
    }
    await connection.client.unlink(new QueueCommands(connection, queue).keys.dedupe(key));
  });
});

test('piecework submit says that a request of its id exists, and that its input counts for nothing', async ({
  commandLine: { run, file, queue },
}) => {
  const id = `${queue}-twice`;
  const first = await run('submit', '--input', await file('two.txt', 'a\nb\n'), '--id', id);
  expect(first).toMatchObject({ code: 0, stderr: '' });
  const second = await run('submit', '--input', await file('one.txt', 'c\n'), '--id', id);
  expect(second).toMatchObject({ code: 0, stdout: first.stdout });
  expect(second.stderr).toContain(`${id} exists already`);
  expect((await run('status', id, '--json')).stdout).toContain('"total":2');
});
