import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CommandCost } from './redis-figures.js';
import { run } from './run.js';
import { type Entrant, orderOf, type SeriesSettings, type Server } from './series.js';
import { fine, type Table } from './tables.js';

interface CpuProfile {
  readonly nodes: { id: number; callFrame: { functionName: string; url: string } }[];
  readonly samples: number[];
  readonly timeDeltas: number[];
}

const SHOWN = 16;

/**
 * One run under V8's profiler: its own time by module and by function (the start and the warm-up
 * are in it, so take a large N), and the server's by command, as the server itself times them.
 */
export async function profile(
  server: Server,
  entrant: Entrant,
  settings: SeriesSettings,
): Promise<Table[]> {
  const folder = mkdtempSync(join(tmpdir(), 'piecework-profile-'));
  try {
    await server.probe.flushall();
    const order = { kind: 'speed' as const, ...orderOf(server, entrant, settings) };
    const report = await run(order, ['--cpu-prof', `--cpu-prof-dir=${folder}`]);
    const [file] = readdirSync(folder);
    const cpu = JSON.parse(readFileSync(join(folder, file ?? ''), 'utf8')) as CpuProfile;
    return [
      selfTimes('module', cpu, ({ url, functionName }) => moduleOf(url) || functionName),
      selfTimes('function', cpu, ({ url, functionName }) =>
        `${functionName || 'anonymous'} ${moduleOf(url)}`.trim(),
      ),
      commandTimes(report.redis.costs, report.finished, report.redis.cpuMicros),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function selfTimes(
  what: string,
  { nodes, samples, timeDeltas }: CpuProfile,
  nameOf: (frame: CpuProfile['nodes'][number]['callFrame']) => string,
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
  return { head: [`client: ${what}`, 'own time'], rows };
}

/** `ioredis`, `@piecework/worker engagement.js`, `node:net`; empty for what is V8's own. */
function moduleOf(url: string): string {
  const dependency = [...url.matchAll(/\/node_modules\/((?:@[^/]+\/)?[^/]+)/g)].at(-1);
  if (dependency && !url.includes('/dist/packages/')) return dependency[1] ?? '';
  const own = /\/packages\/([^/]+)\/dist\/(.+)$/.exec(url);
  return own ? `${own[1]}/${own[2]}` : url;
}

function commandTimes(
  costs: Readonly<Record<string, CommandCost>>,
  finished: number,
  cpuMicros: number,
): Table {
  const rows = Object.entries(costs)
    .sort(([, a], [, b]) => b.micros - a.micros)
    .slice(0, SHOWN)
    .map(([name, { calls, micros }]) => [
      name,
      fine(calls / finished),
      fine(micros / calls),
      fine(micros / finished),
    ]);
  rows.push(['main thread, all in all', '', '', fine(cpuMicros / finished)]);
  return {
    head: ['Redis: command', 'calls per sub-request', 'µs per call', 'µs per sub-request'],
    rows,
  };
}
