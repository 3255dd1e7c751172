import type { Entry } from '../contract/history.js';
import { readJournals } from '../evidence/read-journals.js';

/** A sampled series: bytes over time, and over the number of settled sub-requests. */
export interface Series {
  readonly name: string;
  readonly samples: readonly Sample[];
}

export interface Sample {
  readonly ms: number;
  readonly bytes: number;
  readonly settled: number;
}

/** The samples of the observer: first those of Redis, then those of every process. */
export async function readSeries(folder: string): Promise<Series[]> {
  const series = new Map<string, Sample[]>([['redis', []]]);
  const add = (name: string, sample: Sample) => {
    const samples = series.get(name);
    if (samples) samples.push(sample);
    else series.set(name, [sample]);
  };
  await readJournals(folder, ({ ns, event }: Entry) => {
    if (!('did' in event) || event.did !== 'sample') return;
    const ms = Number(ns) / 1e6;
    const { redis, processes, settled } = event;
    add('redis', { ms, bytes: redis, settled });
    for (const [name, bytes] of Object.entries(processes)) add(name, { ms, bytes, settled });
  });
  return [...series].map(([name, samples]) => ({ name, samples }));
}
