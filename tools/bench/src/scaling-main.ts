import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { REPOSITORY, revisionOf } from './machine.js';
import { realSettings, simulateReal } from './scaling/check.js';
import { measureClient } from './scaling/client-costs.js';
import type { Costs } from './scaling/costs.js';
import { fewRequests, simulateAll, usualSettings } from './scaling/grid.js';
import { measureCosts } from './scaling/measure-costs.js';
import { readOptions } from './scaling/options.js';
import { type Blocks, writePage } from './scaling/page.js';
import { plots } from './scaling/plots.js';
import { type RealRun, realRun } from './scaling/real-run.js';
import * as tables from './scaling/tables.js';
import { forTerminal } from './tables.js';

interface Measured {
  /** What it was measured with, on, and when. */
  readonly about: string;
  readonly costs: Costs;
  readonly runs: readonly RealRun[];
}

/** Standard output is for the figures, or for their JSON. */
const say = (text: string) => console.error(text);

const args = process.argv.slice(2);
const options = readOptions(args);
const measured: Measured = options.from
  ? (JSON.parse(readFileSync(options.from, 'utf8')) as Measured)
  : await measure();
const { costs, runs } = measured;
const checks = runs.map((real) => ({ real, simulated: simulateReal(real, costs, options) }));
const small = ({ workers }: { workers: number }) => workers <= options.mostWorkers;
say('simulating');
const usual = simulateAll(usualSettings().filter(small), costs, options);
const few = simulateAll(fewRequests().filter(small), costs, options);

const { perTurnMicros, perOutcomeMicros } = costs.client;
const client = `A worker process spends ${Math.round(perTurnMicros)} µs per call and ${perOutcomeMicros.toFixed(1)} µs per outcome.`;
const blocks: Blocks = {
  about: measured.about,
  costs: tables.costsTable(costs),
  client,
  ...(checks.length > 0 && { calls: tables.callsTable(checks), check: tables.checkTable(checks) }),
  'nobody waits': tables.throughputTable(usual, false),
  'others wait': tables.throughputTable(usual, true),
  detail: tables.detailTable(usual),
  requests: tables.requestsTable(few),
  idle: tables.idleTable(costs),
};
if (options.write) writePage(blocks, await plots(usual, few), measured);
if (options.json) console.log(JSON.stringify({ measured, checks, usual, few }));
else for (const [name, block] of Object.entries(blocks)) show(name, block);

async function measure(): Promise<Measured> {
  say('measuring calls');
  const server = await measureCosts(options.calls, options.lanes);
  say('measuring a worker process');
  const size = Math.ceil(50_000 * options.scale);
  const found: Costs = { server, client: await measureClient(size) };
  const real: RealRun[] = [];
  for (const setting of realSettings(options.scale).slice(0, options.real)) {
    const { masters, workers, handlerMs, requests } = setting;
    say(`real run: ${masters} masters, ${workers} workers, ${handlerMs} ms, ${requests} requests`);
    real.push(await realRun(setting));
  }
  const [cpu] = cpus();
  const date = new Date().toISOString().slice(0, 10);
  const command = ['pnpm scaling', ...args].join(' ');
  const about = `\`${command}\`, ${date}, revision ${revisionOf(REPOSITORY)}, ${cpus().length} × ${cpu?.model.trim() ?? 'unknown CPU'}, Node ${process.versions.node}.`;
  return { about, costs: found, runs: real };
}

function show(name: string, block: Blocks[string]): void {
  console.log(`\n${name}`);
  console.log(typeof block === 'string' ? block : forTerminal(block));
}
