import { TIMES } from '@piecework/protocol';
import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { startWorker, tickNow } from '../support/fleet.js';
import { mastersOf, test } from '../support/flow.js';
import { until } from '../support/until.js';

useTestClock();

/** Seconds since a client began to block in its pop, of each that does. */
function poppingFor(list: string): number[] {
  return list
    .split('\n')
    .filter((line) => line.includes(' cmd=blmpop'))
    .map((line) => Number(/ idle=(\d+)/.exec(line)?.[1]));
}

test('a token that a frozen client eats is found lost, and another goes out', async ({ flow }) => {
  const frozen = await startWorker(flow, { minMs: 1, maxMs: 1 });
  const masters = mastersOf(flow.connection);
  // Fresh, so that the server serves it for some seconds more.
  await until(async () => {
    const lists = await Promise.all(masters.map((master) => master.client('LIST')));
    const popping = poppingFor(lists.join(''));
    return popping.length === 1 && Number(popping[0]) < 2;
  });
  frozen.kill('SIGSTOP');
  const { id } = await flow.producer().submit([7], { limit: 1 });
  const { client } = flow.connection;
  const list = flow.queueCommands.keys.list(50);
  expect(await client.hget(flow.queueCommands.keys.pushed, '50')).toBe('1');
  await until(async () => (await client.llen(list)) === 0, { what: 'the token is eaten' });

  const handled: number[] = [];
  const worker = flow.worker({ handler: (n: number) => void handled.push(n) });
  await worker.start();
  // The first tend turns the epoch, the next finds that all its tokens are popped, and the grace
  // later the third finds one that never entered.
  await tickNow(flow, id);
  await tickNow(flow, id);
  expect((await flow.request(id).fields('outBefore')).outBefore).toBe('1');
  expect(handled).toEqual([]);
  moveClock(TIMES.graceMs);
  await tickNow(flow, id);
  expect(await flow.complete(id)).toMatchObject({ succeeded: 1, failed: 0, total: 1 });
  expect(handled).toEqual([7]);

  // It has the token in its socket, and takes no harm from it.
  frozen.kill('SIGCONT');
  frozen.kill('SIGTERM');
  expect(await frozen.ended).toBe(0);
  expect(await frozen.started()).toEqual([]);
});
