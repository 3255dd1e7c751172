import { ControlCommands } from '@piecework/protocol';
import { expect } from 'vitest';
import { buildScripts } from '../../scripts/lua-source.mjs';
import { leaseOver, startWorker } from '../support/fleet.js';
import { type Flow, mastersOf, numbers, test } from '../support/flow.js';
import { back, Hand } from '../support/given.js';

/** Three, of which one is read while another runs. */
async function fresh(flow: Flow): Promise<string> {
  const { id } = await flow.producer().submit(numbers(3), { limit: 1 });
  return id;
}

/** One that fails and is due again at once. */
async function due(flow: Flow): Promise<string> {
  const { id } = await flow.producer().submit([0], { attempts: 2 });
  return id;
}

/** One whose next crash would be its last. The token that is out besides is a surplus one. */
async function suspect(flow: Flow): Promise<string> {
  const { id, generation } = await flow.producer().submit([0], { maxCrashes: 2 });
  const [request, queue] = [flow.request(id), flow.queueCommands];
  const hand = new Hand({ id, generation, request, queue, connection: flow.connection });
  const [entry] = await hand.hold(1);
  await flow.connection.client.hset(request.keys.tries, '0:crashes', 1);
  const { mint, epoch, priority } = await hand.settle([back(entry!)], { keep: 0 });
  await queue.push({ id, generation, mint, epoch, priority });
  return id;
}

test.for([
  { script: 'enter', submit: fresh, started: [] },
  { script: 'settle', submit: fresh, started: [0] },
  { script: 'take', submit: due, started: [0] },
  { script: 'run-alone', submit: suspect, started: [] },
  // The last that is told before suspects run; the first note is of the lease.
  { script: 'schedule-tend', submit: suspect, started: [], at: 2 },
] as const)(
  'a worker that froze with the reply to $script in hand starts nothing from it after its lease',
  async ({ script, submit, started, ...times }, { flow }) => {
    const { sha, lua } = buildScripts()[script];
    // Known: the first reply is not that it is not.
    for (const master of mastersOf(flow.connection)) await master.script('LOAD', lua);
    const handle = { minMs: 1, maxMs: 1, fail: submit === due };
    const { at = 1 }: { at?: number } = times;
    const fate = { signal: 'SIGSTOP', at, when: 'after', sha };
    const id = await submit(flow);
    const frozen = await startWorker(flow, handle, { concurrency: 1 }, fate);
    expect(await frozen.said()).toMatchObject({ met: at });
    await leaseOver(flow, id, frozen.id);
    // Nobody is given anything of it from here on: what still starts was in that reply.
    const { generation } = (await flow.request(id).state()) as { generation: number };
    const control = new ControlCommands(flow.connection, id);
    await control.pause(generation);
    frozen.kill('SIGCONT');
    frozen.kill('SIGTERM');
    expect(await frozen.ended).toBe(0);
    expect(await frozen.started()).toEqual(started);
    await control.resume(generation);
  },
);
