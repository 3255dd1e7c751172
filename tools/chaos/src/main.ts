import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { type AttackOptions, type AttackOutcome, attack } from './attack.js';
import { clusterReport } from './cluster/cluster-report.js';
import { judge } from './judge/judge.js';
import { soak } from './judge/soak.js';
import type { Verdict } from './judge/verdict.js';
import {
  CHAOS_RATES,
  CLOCK_RATES,
  CLUSTER_RATES,
  KILLED_MASTERS_RATES,
  LOSS_RATES,
  OUTAGE_RATES,
  SOAK_RATES,
  TAKER_RATES,
} from './nemesis.js';
import { otherRevision } from './other-revision.js';
import { report, soakReport } from './report/report.js';
import type { Fsync } from './server.js';

interface Flags {
  readonly minutes: number;
  readonly seed: number;
  readonly fsync: Fsync;
  readonly rate?: number;
  readonly cluster?: boolean;
  readonly killMasters?: boolean;
  readonly lostWrites?: boolean;
  readonly clocks?: boolean;
  readonly outages?: boolean;
  readonly queues?: boolean;
  readonly shards?: number;
  readonly all?: boolean;
  readonly mixed?: string;
  readonly keepJournals?: string;
  readonly json?: boolean;
}

/** Sub-requests a second: what two cores do with everything else going on. */
const CHAOS_RATE = 700;
/** The same where six servers share them. */
const CLUSTER_RATE = 250;

/** So many processes put into the other queues and take from them. */
const TAKERS = 3;
const ALL_SHARDS = 3;

/** Standard output is for the verdict, or for its JSON. */
const say = (line: string) => console.error(line);

function positive(text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError('It has to be a number above 0.');
}

function whole(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new InvalidArgumentError('It has to be a whole number from 0 on.');
}

/** Without what was not asked for, so that a default may stand there. */
const asked = ({ lostWrites, clocks, outages, queues }: Flags): Partial<Flags> =>
  Object.fromEntries(
    Object.entries({ lostWrites, clocks, outages, queues }).filter(([, is]) => is === true),
  );

/** Journals of two runs in one folder would be judged as one. */
function freshFolder(text: string): string {
  const folder = resolve(text);
  if (!existsSync(join(folder, 'journals'))) return folder;
  throw new InvalidArgumentError('It has journals of another run.');
}

const program = new Command('chaos')
  .description('Attacks Piecework with real processes, and judges what they wrote down.')
  // Given to the commands below as well, so it stands before them.
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));

function addCommand(name: string, description: string, minutes: number): Command {
  return program
    .command(name)
    .description(description)
    .option('--minutes <n>', 'how long there are faults', positive, minutes)
    .option('--seed <n>', 'decides the faults and the work', whole, 1)
    .addOption(
      new Option('--fsync <when>', 'when Redis writes its file to the disk')
        .choices(['always', 'everysec', 'no'])
        .default('always'),
    )
    .option('--keep-journals <dir>', 'leave journals and logs in this folder', freshFolder)
    .option('--json', 'the verdict as JSON', false);
}

addCommand('chaos', 'kills, freezes, cuts, restarts; nothing may be lost or counted twice', 6)
  .option('--rate <n>', 'sub-requests a second (default: 700, of a cluster 250)', positive)
  .option('--cluster', 'a cluster: failovers, hash slots on their way, killed workers', false)
  .option(
    '--kill-masters',
    'its masters are killed as well: acknowledged writes may be lost',
    false,
  )
  .option('--lost-writes', 'the server loses its last writes: old replicas, old snapshots', false)
  .option('--clocks', 'the clock of the server is wrong, by seconds to an hour, both ways', false)
  .option('--outages', 'the server is away for half a lease to three leases', false)
  .option('--queues', 'the four other queues as well', false)
  .option('--shards <k>', 'how many shards the queue has', whole, 1)
  .option('--all', 'all of these, and three shards', false)
  .option(
    '--mixed <commit>',
    'every second process is of that revision, built in a temporary folder',
  )
  .action((flags: Flags) => {
    const { minutes, cluster = false, killMasters = false, all = false, rate } = flags;
    if (killMasters && !cluster) program.error('--kill-masters needs --cluster', { exitCode: 2 });
    const ofCluster = killMasters ? KILLED_MASTERS_RATES : CLUSTER_RATES;
    const { lostWrites = all, clocks = all, outages = all, queues = all } = asked(flags);
    if (cluster && (lostWrites || clocks || outages || queues))
      program.error('--cluster has faults of its own', { exitCode: 2 });
    return run(flags, {
      rates: {
        ...(cluster ? ofCluster : CHAOS_RATES),
        ...(lostWrites && LOSS_RATES),
        ...(clocks && CLOCK_RATES),
        ...(outages && OUTAGE_RATES),
        ...(queues && TAKER_RATES),
      },
      ...{ stepsClock: clocks, shortLeases: outages, takers: queues ? TAKERS : 0 },
      shards: all ? ALL_SHARDS : (flags.shards ?? 1),
      fillsMemory: !cluster && minutes >= 1,
      itemsPerSecond: rate ?? (cluster ? CLUSTER_RATE : CHAOS_RATE),
      sparedWorkers: 0,
    });
  });
addCommand('soak', 'half load with few faults, for long: does memory grow?', 15).action(
  (flags: Flags) =>
    run(flags, {
      rates: SOAK_RATES,
      fillsMemory: false,
      itemsPerSecond: 'half',
      ...{ sparedWorkers: 3, stepsClock: false, shortLeases: false, takers: 0, shards: 1 },
    }),
);
await program.parseAsync();

async function run(
  flags: Flags,
  kind: Omit<
    AttackOptions,
    'minutes' | 'seed' | 'fsync' | 'cluster' | 'keep' | 'say' | 'elsewhere'
  >,
): Promise<void> {
  const { minutes, seed, fsync, keepJournals, json } = flags;
  const keep = keepJournals;
  const { cluster = false, killMasters = false } = flags;
  await using other = flags.mixed === undefined ? undefined : otherRevision(flags.mixed, say);
  const elsewhere = other?.programs;
  const options = { minutes, seed, fsync, cluster, keep, say, elsewhere, ...kind };
  const clean = await attack(options, (outcome) =>
    conclude(outcome, {
      ...{ json: json ?? false, keep, grows: kind.itemsPerSecond === 'half', cluster, killMasters },
    }),
  );
  process.exitCode = clean ? 0 : 1;
}

interface Conclusion {
  readonly json: boolean;
  readonly keep: string | undefined;
  readonly grows: boolean;
  readonly cluster: boolean;
  readonly killMasters: boolean;
}

/** Says how it went; whether all is well. */
async function conclude(
  { journals, troubles, errors }: AttackOutcome,
  { json, keep, grows, cluster, killMasters }: Conclusion,
): Promise<boolean> {
  const verdict = await judge(journals);
  const grown = grows ? await soak(journals) : undefined;
  // `judge combine` reads what is said here of several runs.
  if (json) console.log(JSON.stringify(grown ? { verdict, soak: grown } : verdict));
  else {
    console.log(report(verdict));
    if (grown) console.log(soakReport(grown));
    if (cluster) console.log(await clusterReport(journals, errors));
    for (const trouble of troubles) console.log(`TROUBLE: ${trouble}`);
  }
  if (keep !== undefined) say(`journals: ${journals}`);
  if (errors.has('CROSSSLOT')) return false;
  // What a killed master had acknowledged and not passed on is gone: said above, and no fault of ours.
  if (killMasters) return isComplete(verdict, troubles);
  return verdict.clean && troubles.length === 0;
}

/** Whether all that was begun has ended, and the run can be judged. */
function isComplete({ findings }: Verdict, troubles: readonly string[]): boolean {
  const never = ['never completed', 'cut short', 'torn journal', 'unexpected'] as const;
  return never.every((kind) => findings[kind].count === 0) && troubles.length === 0;
}
