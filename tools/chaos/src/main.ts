import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { type AttackOptions, type AttackOutcome, attack } from './attack/attack.js';
import { otherRevision } from './attack/other-revision.js';
import type { Fsync } from './attacked/server.js';
import { clusterReport } from './cluster/cluster-report.js';
import {
  CHAOS_RATES,
  CLOCK_RATES,
  CLUSTER_RATES,
  KILLED_MASTERS_RATES,
  LOSS_RATES,
  OUTAGE_RATES,
  SENTINEL_KILL_RATES,
  SENTINEL_RATES,
  SOAK_RATES,
  TAKER_RATES,
} from './faults/nemesis.js';
import { soak } from './growth/soak.js';
import { judge } from './judge/judge.js';
import type { Verdict } from './judge/verdict.js';
import { report, soakReport } from './report/report.js';

interface Flags {
  readonly minutes: number;
  readonly seed: number;
  readonly fsync: Fsync;
  readonly rate?: number;
  readonly cluster?: boolean;
  readonly sentinel?: boolean;
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

/** Sub-requests a second: what two cores can do beside everything else. */
const CHAOS_RATE = 700;
/** The same where six servers, or three and their Sentinels, share the cores. */
const CLUSTER_RATE = 250;

/** Number of processes that use the other queues. */
const TAKERS = 3;
const ALL_SHARDS = 3;

/** Messages go to standard error; standard output is for the verdict, or for its JSON. */
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

/** The flags that were given, so that defaults apply to the others. */
const asked = ({ lostWrites, clocks, outages, queues }: Flags): Partial<Flags> =>
  Object.fromEntries(
    Object.entries({ lostWrites, clocks, outages, queues }).filter(([, is]) => is === true),
  );

/** The folder, if it has no journals yet: two runs in one folder would be judged as one. */
function freshFolder(text: string): string {
  const folder = resolve(text);
  if (!existsSync(join(folder, 'journals'))) return folder;
  throw new InvalidArgumentError('It has journals of another run.');
}

const program = new Command('chaos')
  .description('Attacks Piecework with real processes, and judges what they wrote down.')
  // Before the commands below, as they inherit it.
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));

function addCommand(name: string, description: string, minutes: number): Command {
  return program
    .command(name)
    .description(description)
    .option('--minutes <n>', 'length of the attack', positive, minutes)
    .option('--seed <n>', 'determines the faults and the work', whole, 1)
    .addOption(
      new Option('--fsync <when>', 'when Redis writes its append-only file to the disk')
        .choices(['always', 'everysec', 'no'])
        .default('always'),
    )
    .option('--keep-journals <dir>', 'keep journals and logs in this folder', freshFolder)
    .option('--json', 'the verdict as JSON', false);
}

addCommand('chaos', 'kills, freezes, cuts, restarts; nothing may be lost or counted twice', 6)
  .option('--rate <n>', 'sub-requests a second (default: 700, of a cluster 250)', positive)
  .option('--cluster', 'attack a cluster: failovers, migrating hash slots, killed workers', false)
  .option('--sentinel', 'attack servers behind Sentinel: planned failovers, killed workers', false)
  .option(
    '--kill-masters',
    'also kill masters of the cluster, or behind Sentinel: acknowledged writes may be lost',
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
    const { minutes, cluster = false, sentinel = false, killMasters = false, all = false } = flags;
    const isSeveral = cluster || sentinel;
    if (cluster && sentinel)
      program.error('--cluster and --sentinel exclude each other', { exitCode: 2 });
    if (killMasters && !isSeveral)
      program.error('--kill-masters needs --cluster or --sentinel', { exitCode: 2 });
    const ofCluster = killMasters ? KILLED_MASTERS_RATES : CLUSTER_RATES;
    const ofSentinel = killMasters ? SENTINEL_KILL_RATES : SENTINEL_RATES;
    const { lostWrites = all, clocks = all, outages = all, queues = all } = asked(flags);
    if (isSeveral && (lostWrites || clocks || outages || queues))
      program.error(`--${cluster ? 'cluster' : 'sentinel'} has faults of its own`, { exitCode: 2 });
    return run(flags, {
      rates: {
        ...(cluster ? ofCluster : sentinel ? ofSentinel : CHAOS_RATES),
        ...(lostWrites && LOSS_RATES),
        ...(clocks && CLOCK_RATES),
        ...(outages && OUTAGE_RATES),
        ...(queues && TAKER_RATES),
      },
      ...{ stepsClock: clocks, shortLeases: outages, takers: queues ? TAKERS : 0 },
      shards: all ? ALL_SHARDS : (flags.shards ?? 1),
      fillsMemory: !isSeveral && minutes >= 1,
      itemsPerSecond: flags.rate ?? (isSeveral ? CLUSTER_RATE : CHAOS_RATE),
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
    'minutes' | 'seed' | 'fsync' | 'cluster' | 'sentinel' | 'keep' | 'say' | 'elsewhere'
  >,
): Promise<void> {
  const { minutes, seed, fsync, keepJournals, json } = flags;
  const keep = keepJournals;
  const { cluster = false, sentinel = false, killMasters = false } = flags;
  await using other = flags.mixed === undefined ? undefined : otherRevision(flags.mixed, say);
  const elsewhere = other?.programs;
  const options = { minutes, seed, fsync, cluster, sentinel, keep, say, elsewhere, ...kind };
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

/** Judges and reports the run; returns whether all is well. */
async function conclude(
  { journals, troubles, errors }: AttackOutcome,
  { json, keep, grows, cluster, killMasters }: Conclusion,
): Promise<boolean> {
  const verdict = await judge(journals);
  const grown = grows ? await soak(journals) : undefined;
  // `judge combine` reads this output of several runs.
  if (json) console.log(JSON.stringify(grown ? { verdict, soak: grown } : verdict));
  else {
    console.log(report(verdict));
    if (grown) console.log(soakReport(grown));
    if (cluster) console.log(await clusterReport(journals, errors));
    for (const trouble of troubles) console.log(`TROUBLE: ${trouble}`);
  }
  if (keep !== undefined) say(`journals: ${journals}`);
  if (errors.has('CROSSSLOT')) return false;
  // A killed master may lose writes that it had acknowledged and not replicated: reported above, and no failure.
  if (cluster && killMasters) return isComplete(verdict, troubles);
  return verdict.clean && troubles.length === 0;
}

/** Whether every request has ended, and the run can be judged. */
function isComplete({ findings }: Verdict, troubles: readonly string[]): boolean {
  const never = ['never completed', 'cut short', 'torn journal', 'unexpected'] as const;
  return never.every((kind) => findings[kind].count === 0) && troubles.length === 0;
}
