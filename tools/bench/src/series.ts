import type { Redis } from 'ioredis';
import { type ContenderName, contenders } from './contenders/index.js';
import { run } from './run.js';
import type { RunOrder, SpeedReport } from './run-order.js';

/** One row of the tables: a contender, or Piecework of one revision. */
export interface Entrant {
  readonly title: string;
  readonly contender: ContenderName;
  readonly pieceworkRoot: string;
}

/** Settings of every run of a series, the same for all entrants. */
export interface SeriesSettings {
  readonly rounds: number;
  readonly count: number;
  readonly warmUpCount: number;
  readonly payloadBytes: number;
  readonly concurrency: number;
  readonly budgetMs: number;
  readonly echoes?: boolean;
}

export interface Measured {
  readonly entrant: Entrant;
  readonly runs: SpeedReport[];
  /** Per waiting sub-request. */
  readonly waitingBytes: number;
}

export interface Server {
  readonly host: string;
  readonly port: number;
  /** A connection that flushes the server, which was started for this series. */
  readonly probe: Redis;
}

/**
 * Measures all entrants in turn, round after round, so that other load on the machine affects all of them alike. Every
 * second round goes backwards: the same revision measured against itself, always first, had 0.98 times its own rate.
 */
export async function measureSeries(
  server: Server,
  entrants: readonly Entrant[],
  settings: SeriesSettings,
  onStatus: (text: string) => void,
): Promise<Measured[]> {
  const runs = new Map<Entrant, SpeedReport[]>(entrants.map((entrant) => [entrant, []]));
  for (let round = 1; round <= settings.rounds; round += 1) {
    for (const entrant of round % 2 === 1 ? entrants : entrants.toReversed()) {
      await server.probe.flushall();
      const report = await run('speed', orderOf(server, entrant, settings));
      runs.get(entrant)?.push(report);
      const rate = Math.round((report.finished / report.elapsedMs) * 1_000);
      const cut = report.inTime ? '' : `, cut off after ${report.finished}`;
      onStatus(`round ${round}: ${entrant.title}: ${rate} sub-requests/s${cut}`);
    }
  }
  const measured: Measured[] = [];
  for (const entrant of entrants) {
    await server.probe.flushall();
    const report = await run('memory', orderOf(server, entrant, settings));
    const waitingBytes = report.waitingBytes / settings.count;
    onStatus(`waiting: ${entrant.title}: ${Math.round(waitingBytes)} bytes per sub-request`);
    measured.push({ entrant, runs: runs.get(entrant) ?? [], waitingBytes });
  }
  await server.probe.flushall();
  return measured;
}

/** The order of one run, but for its kind. */
export function orderOf(
  { host, port }: Server,
  { contender, pieceworkRoot }: Entrant,
  { rounds, ...settings }: SeriesSettings,
): Omit<RunOrder, 'kind'> {
  return { host, port, contender, pieceworkRoot, ...settings };
}

export function entrantsOf(names: readonly ContenderName[], pieceworkRoot: string): Entrant[] {
  return names.map((contender) => ({
    title: contenders[contender].title,
    contender,
    pieceworkRoot,
  }));
}
