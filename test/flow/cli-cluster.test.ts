/*
 * The command line and the addresses of a cluster.
 */
import type { Connection } from '@piecework/protocol';
import { expect } from 'vitest';
import { cli } from '../support/cli.js';
import { jsonLines, test } from '../support/command-line.js';
import { mastersOf } from '../support/flow.js';
import { keysNaming } from '../support/own-keys.js';

/** One id for each of the three masters, who have a third of the hash slots each. */
async function anIdForEachMaster(connection: Connection, name: string): Promise<string[]> {
  const [master] = mastersOf(connection);
  const ids = new Map<number, string>();
  for (let n = 0; ids.size < 3 && n < 1_000; n += 1) {
    const slot = Number(await master?.cluster('KEYSLOT', `${name}-${n}`));
    ids.set(Math.floor((slot * 3) / 16_384), `${name}-${n}`);
  }
  return [...ids.values()].sort();
}

test('one address given twice leads to the whole cluster, also the address of a replica', {
  tags: 'only-cluster',
}, async ({ commandLine }) => {
  const { file, queue, connection } = commandLine;
  const nodes = commandLine.redis.split(',');
  const input = await file('two.txt', 'a\nb\n');
  // The masters come first, then the replicas.
  const [master = '', replica = ''] = [nodes.at(0), nodes.at(-1)];
  for (const redis of [master, replica]) {
    const alone = await cli(['list', '--queue', queue, '--json'], { redis });
    expect(alone.code).toBe(1);
    expect(JSON.parse(alone.stderr).error).toMatchObject({
      code: 'CLUSTER',
      message: expect.stringContaining('one of the 3 masters'),
    });
  }

  const on = (url: string, ...args: string[]) =>
    cli([...args, '--queue', queue, '--redis', `${url},${url}`]);
  const ids = await anIdForEachMaster(connection, queue);
  for (const id of ids) {
    expect(await on(master, 'submit', '--input', input, '--id', id)).toMatchObject({ code: 0 });
  }
  for (const each of mastersOf(connection)) {
    const requests = (await keysNaming(each, queue)).filter((key) => key.startsWith('request:'));
    expect(requests).toHaveLength(1);
  }
  const listed = jsonLines<{ id: string }>((await on(replica, 'list', '--json')).stdout);
  expect(listed.map(({ id }) => id).sort()).toEqual(ids);

  const handler = await file('handler.mjs', "export default (text) => text + '!';");
  const ran = await on(replica, 'run', '--input', input, '--handler', handler, '--out', '-');
  expect(ran.code, ran.stderr).toBe(0);
  expect(jsonLines(ran.stdout).map(({ value }) => value)).toEqual(['a!', 'b!']);
});
