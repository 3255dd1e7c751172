import { startRedis } from '@piecework/embedded';
import { Redis } from 'ioredis';
import { aimsTable } from './aims.js';
import { checkOut } from './checkout.js';
import { rowsTable, verdictsTable } from './figure/figure-tables.js';
import { measureFigures } from './figures/measure-figures.js';
import { REPOSITORY, revisionOf, surroundings } from './machine.js';
import { type BenchOptions, readOptions } from './options.js';
import type { Outcome } from './outcome.js';
import { profile } from './profile.js';
import { writeReport } from './report.js';
import { type Entrant, entrantsOf, measureSeries, type Server } from './series.js';
import { compareSmall } from './small/compare-small.js';
import { cutOffNotes, summarise } from './summary.js';
import { figuresTable, forTerminal, ratiosTable } from './tables.js';

/** Standard output is for the figures, or for their JSON. */
const say = (text: string) => console.error(text);

const args = process.argv.slice(2);
const options = readOptions(args);
await using redis = await startRedis({
  password: '',
  persistence: options.aof ? 'aof' : 'none',
  onStatus: say,
});
const probe = new Redis(redis.url);
const server: Server = { host: redis.host, port: redis.port, probe };
try {
  if (options.profile) await showProfile();
  else await showSeries();
} finally {
  probe.disconnect();
}

async function showProfile(): Promise<void> {
  const [entrant] = entrantsOf(['piecework'], REPOSITORY);
  for (const table of await profile(server, entrant as Entrant, options)) {
    console.log(forTerminal(table));
  }
}

async function showSeries(): Promise<void> {
  if (options.compare === undefined) {
    return show(await measureAll(options, entrantsOf(options.only, REPOSITORY)));
  }
  await using other = checkOut(options.compare, say);
  const [here] = entrantsOf(['piecework'], REPOSITORY) as [Entrant];
  const entrants = [
    { ...here, title: `Piecework ${revisionOf(REPOSITORY)}` },
    {
      ...here,
      title: `Piecework ${options.compare} (${revisionOf(other.root)})`,
      pieceworkRoot: other.root,
    },
  ];
  if (options.requestsOf.length > 0) return await showSmall(entrants);
  return show(await measureAll({ ...options, rates: true, figures: [] }, entrants));
}

async function showSmall(entrants: readonly Entrant[]): Promise<void> {
  const { machine, versions, load } = await surroundings(probe);
  say(`${machine} · ${versions} · load ${load}`);
  const { payloadBytes, concurrency, rounds } = options;
  for (const size of options.requestsOf) {
    // A turn takes less than a second.
    const requests = Math.max(100, Math.round(1_000 / size));
    const comparison = { size, requests, turns: rounds * 10, payloadBytes, concurrency };
    console.log(forTerminal(await compareSmall(server, entrants, comparison)));
  }
}

async function measureAll(settings: BenchOptions, entrants: readonly Entrant[]): Promise<Outcome> {
  const around = await surroundings(probe);
  say(`${around.machine} · ${around.versions} · load ${around.load}`);
  const measured = settings.rates ? await measureSeries(server, entrants, settings, say) : [];
  const { rounds, count, warmUpCount, payloadBytes, concurrency, budgetMs } = settings;
  const everyRun = { rounds, count, warmUpCount, payloadBytes, concurrency, budgetMs };
  const { size } = settings;
  return {
    command: ['pnpm bench', ...args].join(' '),
    surroundings: around,
    settings: everyRun,
    size,
    measured,
    summaries: measured.map(summarise),
    figures: await measureFigures(settings.figures, server, everyRun, size, say, settings),
  };
}

function show(outcome: Outcome): void {
  const { summaries, figures } = outcome;
  if (options.report) writeReport(options.report, outcome);
  if (options.json) {
    console.log(JSON.stringify(outcome, null, 2));
    return;
  }
  const tables = summaries.length > 0 ? [figuresTable(summaries)] : [];
  if (summaries.length > 1) tables.push(ratiosTable(summaries));
  const aims = options.compare === undefined ? aimsTable(summaries) : undefined;
  if (aims) tables.push(aims);
  tables.push(...figures.map(rowsTable));
  if (figures.length > 0) tables.push(verdictsTable(figures));
  for (const table of tables) console.log(forTerminal(table));
  for (const note of cutOffNotes(summaries, outcome.settings.budgetMs)) console.log(note);
}
