import type { Entry, Outcome } from '@piecework/protocol';
import type { CallCost, REQUEST_CALLS } from './costs.js';
import type { Lane, Meter } from './meter.js';

type RequestCosts = Record<(typeof REQUEST_CALLS)[number], CallCost>;

const LEASE_MS = 600_000;
const PAYLOAD = JSON.stringify('x'.repeat(98));
const CHUNK = 500;

/** Options as a producer writes them. */
const FIELDS = {
  queue: 'scaling',
  priority: 50,
  limit: 1_000_000,
  task: '',
  attempts: 1,
  maxCrashes: 3,
  window: 0,
  results: 'keep',
  retentionMs: 3_600_000,
  toleratedFailures: 0,
  digest: '',
  onProducerLost: 'seal',
  metadata: '',
};

/** A request as a producer creates it. */
const creationOf = (generation: number) => ({
  ...{ generation, owner: 'owner', leaseMs: LEASE_MS },
  options: JSON.stringify(Object.entries(FIELDS).flat().map(String)),
});

/** The request side: hash slot of each request. `calls`: how often the frequent ones are called. */
export async function requestCosts(meter: Meter, calls: number): Promise<RequestCosts> {
  const [first] = meter.lanes as [Lane];
  const create = await meter.measure(Math.ceil(calls / 4), ({ request, number }, turn) =>
    request(`made-${number}-${turn}`).create(creationOf(Date.now())),
  );
  const append500 = await measureAppend(meter, Math.ceil(calls / 20));
  const enter = await measureEnter(meter, 1, calls);
  const enter10 = await measureEnter(meter, 10, Math.ceil(calls / 4));
  const firstRead = await measureFirstRead(meter, calls);
  const turn1 = await measureTurn(meter, 1, calls);
  const turn10 = await measureTurn(meter, 10, calls);
  const turn100 = await measureTurn(meter, 100, Math.ceil(calls / 10));
  const settle1 = await measureSettle(meter, calls);
  const held = await filled(first, 'held', 10 * meter.lanes.length);
  await meter.each(async (lane) => {
    await lane.request('held').enter({
      generation: held,
      worker: `w${lane.number}`,
      op: 1,
      want: 10,
      leaseMs: LEASE_MS,
      tasks: '*',
      epochs: ['1'],
    });
    await lane.request('held').read(`w${lane.number}`, 10);
  });
  const renew = await meter.measure(calls, ({ request, number }) =>
    request('held').renew(held, `w${number}`, LEASE_MS, []),
  );
  const compare = await meter.measure(calls, ({ request, number }) =>
    request('held').pending(`w${number}`, 110),
  );
  const results1000 = await meter.measure(Math.ceil(calls / 20), ({ request }) =>
    // Entries as turns of ten outcomes leave them.
    request('turn10').results('-', 100),
  );
  return {
    ...{ create, append500, enter, enter10, firstRead, turn1, turn10, turn100, settle1 },
    ...{ renew, compare },
    tend1: await measureTend(meter, 1, calls),
    tend100: await measureTend(meter, 100, Math.ceil(calls / 10)),
    tend1000: await measureTend(meter, 1_000, Math.ceil(calls / 20)),
    results1000,
  };
}

/** A request with `count` sub-requests; answers its generation. */
async function filled({ request }: Lane, id: string, count: number): Promise<number> {
  const generation = Date.now();
  const commands = request(id);
  await commands.create(creationOf(generation));
  for (let sent = 0; sent < count; sent += CHUNK) {
    const chunk = Array<string>(Math.min(CHUNK, count - sent)).fill(PAYLOAD);
    await commands.append(generation, 'producer', sent, chunk);
  }
  return generation;
}

async function measureAppend(meter: Meter, calls: number): Promise<CallCost> {
  const generations = new Map<Lane, number>();
  await meter.each(async (lane) => {
    generations.set(lane, await filled(lane, `append-${lane.number}`, 0));
  });
  const chunk = Array<string>(CHUNK).fill(PAYLOAD);
  return meter.measure(calls, (lane, turn) => {
    const generation = generations.get(lane) as number;
    return lane.request(`append-${lane.number}`).append(generation, 'p', turn * CHUNK, chunk);
  });
}

/** Each reads its sub-requests too. */
async function measureEnter(meter: Meter, want: number, calls: number): Promise<CallCost> {
  const [first] = meter.lanes as [Lane];
  const id = `enter${want}`;
  const generation = await filled(first, id, want * (calls + meter.lanes.length));
  return meter.measure(calls, ({ request, number }, turn) =>
    request(id).enter({
      generation,
      worker: `w${number}`,
      op: turn + 1,
      want,
      most: want,
      leaseMs: LEASE_MS,
      tasks: '*',
      epochs: ['1'],
    }),
  );
}

async function measureFirstRead(meter: Meter, calls: number): Promise<CallCost> {
  const [first] = meter.lanes as [Lane];
  const lanes = meter.lanes.length;
  const generation = await filled(first, 'first', calls + lanes);
  const turns = Math.ceil(calls / lanes) + 1;
  await meter.each(async ({ request, number }) => {
    await request('first').enter({
      generation,
      worker: `w${number}`,
      op: 1,
      want: turns,
      leaseMs: LEASE_MS,
      tasks: '*',
      epochs: ['1'],
    });
  });
  return meter.measure(calls, ({ request, number }, turn) => {
    const numbers = { op: turn + 2, leaseMs: LEASE_MS, keep: turns, running: turn, read: 1 };
    return request('first').settle(generation, `w${number}`, numbers, []);
  });
}

/** Settle of k and the next read of k, as a worker does it all the time. */
async function measureTurn(meter: Meter, k: number, calls: number): Promise<CallCost> {
  const [first] = meter.lanes as [Lane];
  const lanes = meter.lanes.length;
  const id = `turn${k}`;
  const turns = Math.ceil(calls / lanes) + 1;
  const generation = await filled(first, id, (turns + 1) * lanes * k);
  const held = new Map<Lane, readonly Entry[]>();
  const round = async (lane: Lane, op: number) => {
    const numbers = { op, leaseMs: LEASE_MS, keep: k, running: 0, read: k };
    const { entries } = await lane
      .request(id)
      .settle(generation, `w${lane.number}`, numbers, succeeded(held.get(lane) ?? []));
    if (entries.length !== k) throw new Error(`a read of ${k} brought ${entries.length}`);
    held.set(lane, entries);
  };
  await meter.each(async (lane) => {
    const { request, number } = lane;
    await request(id).enter({
      generation,
      worker: `w${number}`,
      op: 1,
      want: k,
      leaseMs: LEASE_MS,
      tasks: '*',
      epochs: ['1'],
    });
    await round(lane, 2);
  });
  return meter.measure(calls, (lane, turn) => round(lane, turn + 3));
}

/** Settle of one without a read: what a worker that leaves does. */
async function measureSettle(meter: Meter, calls: number): Promise<CallCost> {
  const [first] = meter.lanes as [Lane];
  const lanes = meter.lanes.length;
  const turns = Math.ceil(calls / lanes);
  const generation = await filled(first, 'settle1', turns * lanes);
  const held = new Map<Lane, Entry[]>();
  await meter.each(async (lane) => {
    const commands = lane.request('settle1');
    const worker = `w${lane.number}`;
    await commands.enter({
      generation,
      worker,
      op: 1,
      want: turns,
      leaseMs: LEASE_MS,
      tasks: '*',
      epochs: ['1'],
    });
    const entries = await commands.read(worker, turns);
    held.set(lane, entries === 'gone' ? [] : entries);
  });
  return meter.measure(calls, (lane, turn) => {
    const left = turns - turn - 1;
    const numbers = { op: turn + 2, leaseMs: LEASE_MS, keep: left, running: left, read: 0 };
    const outcome = succeeded(held.get(lane)?.slice(turn, turn + 1) ?? []);
    return lane.request('settle1').settle(generation, `w${lane.number}`, numbers, outcome);
  });
}

/** The tend of a request of which `holders` workers have one sub-request each. */
async function measureTend(meter: Meter, holders: number, calls: number): Promise<CallCost> {
  const [first] = meter.lanes as [Lane];
  const id = `tend${holders}`;
  const generation = await filled(first, id, holders + 10);
  const commands = first.request(id);
  for (let i = 0; i < holders; i += 1) {
    await commands.enter({
      generation,
      worker: `holder-${i}`,
      op: 1,
      want: 1,
      leaseMs: LEASE_MS,
      tasks: '*',
      epochs: ['1'],
    });
    await commands.read(`holder-${i}`, 1);
  }
  return meter.measure(calls, ({ request }) => request(id).tend(generation, ''));
}

const succeeded = (entries: readonly Entry[]): Outcome[] =>
  entries.map(({ entry, index }) => ({ entry, kind: 's', value: String(index) }));
