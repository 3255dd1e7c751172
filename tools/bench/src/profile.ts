import { run } from './run.js';
import type { Cost, CpuProfile } from './run-order.js';
import { type Entrant, orderOf, type SeriesSettings, type Server } from './series.js';
import { fine, type Table } from './tables.js';

type CallFrame = CpuProfile['nodes'][number]['callFrame'];

const SHOWN = 16;

/**
 * Where the time of one run goes: that of the client by module and by function, as V8 samples it, and that of the
 * server by command, as the server measures it. V8 samples by the wall clock: on a busy machine, waiting for a core
 * shows up at system calls.
 */
export async function profile(
  server: Server,
  entrant: Entrant,
  settings: SeriesSettings,
): Promise<Table[]> {
  await server.probe.flushall();
  const report = await run('profile', orderOf(server, entrant, settings));
  const { submitting, working, cpuProfile } = report;
  return [
    halves(submitting, working, settings.count),
    commandTimes('submitting', submitting, settings.count),
    commandTimes('working and reading', working, settings.count),
    selfTimes('module', cpuProfile, moduleOf),
    selfTimes('function', cpuProfile, (frame) =>
      frame.url === '' ? moduleOf(frame) : `${frame.functionName || '…'} in ${moduleOf(frame)}`,
    ),
  ];
}

function halves(submitting: Cost, working: Cost, count: number): Table {
  const row = (title: string, ...micros: [client: number, redis: number]) => [
    title,
    ...micros.map((value) => fine(value / count)),
  ];
  const half = (title: string, { clientCpuMicros, redis }: Cost) =>
    row(title, clientCpuMicros, redis.cpuMicros);
  return {
    head: ['CPU µs per sub-request', 'client', 'Redis'],
    rows: [half('submitting', submitting), half('working and reading', working)],
  };
}

function commandTimes(half: string, { redis }: Cost, count: number): Table {
  const rows = Object.entries(redis.costs)
    .sort(([, a], [, b]) => b.micros - a.micros)
    .slice(0, SHOWN / 2)
    .map(([name, { calls, micros }]) => [
      name,
      fine(calls / count),
      fine(micros / calls),
      fine(micros / count),
    ]);
  return { head: [`Redis, ${half}`, 'calls each', 'µs per call', 'µs each'], rows };
}

function selfTimes(
  what: string,
  { nodes, samples = [], timeDeltas = [] }: CpuProfile,
  nameOf: (frame: CallFrame) => string,
): Table {
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  const micros = new Map<string, number>();
  for (const [i, id] of samples.entries()) {
    const name = names.get(id) ?? '?';
    if (name === '(idle)') continue;
    micros.set(name, (micros.get(name) ?? 0) + (timeDeltas[i] ?? 0));
  }
  const all = [...micros.values()].reduce((sum, value) => sum + value, 0);
  const rows = [...micros]
    .sort(([, a], [, b]) => b - a)
    .slice(0, SHOWN)
    .map(([name, own]) => [name, `${((100 * own) / all).toFixed(1)} %`]);
  return { head: [`client, by ${what}`, 'own time'], rows };
}

/** `ioredis`, `worker/session.js`, `node:net`; V8's own by the name of the function. */
function moduleOf({ url, functionName }: CallFrame): string {
  if (url === '') return functionName || 'V8, without a name';
  const own = /\/packages\/([^/]+\/)dist\/(.+)$/.exec(url);
  if (own) return `${own[1]}${own[2]}`;
  const dependency = [...url.matchAll(/\/node_modules\/((?:@[^/]+\/)?[^/]+)/g)].at(-1);
  return dependency?.[1] ?? url;
}
