import type { Command } from 'commander';
import type { Finding } from 'piecework';
import type { Piecework } from 'piecework/client';
import { commonFlags } from '../flags/common-flags.js';
import { doctorFlags, usersOf } from '../flags/query-flags.js';
import { addFlags, readFlags } from '../flags/read-flags.js';
import { existingRedis } from '../flags/redis-url.js';
import { print, printTable } from '../terminal/print.js';
import { otherShards, SAME_SHARDS } from './other-shards.js';

interface DoctorValues {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
  deep: boolean;
  repair: boolean;
  users?: string;
  slowMs?: number;
}

/** `doctor`: says what is wrong with the servers and a queue, and what to do. Exit code 1 if there is an error. */
export function doctorCommand(program: Command): void {
  const command = program
    .command('doctor')
    .description('check Redis and a queue, and say what is wrong and what to do');
  addFlags(command, commonFlags, doctorFlags).action(async (given: Record<string, unknown>) => {
    const values = readFlags<DoctorValues>(given, commonFlags, doctorFlags);
    const { deep, repair, users, slowMs } = values;
    const redis = existingRedis(values.redis);
    // Not by `openPiecework`, which refuses a server where the doctor says what is wrong with it.
    const { Piecework } = await import('piecework/client');
    const { queue, shards } = values;
    await using pw = new Piecework({ redis, queue, shards });
    const asked = {
      ...(users === undefined ? {} : { users: usersOf(users) }),
      ...(slowMs === undefined ? {} : { slowMs }),
    };
    const findings = await pw.admin.doctor({ deep, repair, ...asked });
    findings.push(...(await shardsAmiss(pw, values)));
    const { findingLines } = await import('../output/finding-lines.js');
    for (const finding of findings)
      if (values.json) print(JSON.stringify(finding));
      else printTable(findingLines(finding));
    if (findings.some(({ level }) => level === 'error')) process.exitCode = 1;
  });
}

/** A queue without open requests may have another number of shards than the command was given. */
async function shardsAmiss({ admin }: Piecework, values: DoctorValues): Promise<Finding[]> {
  const counts = await admin.counts().catch(() => undefined);
  const what = counts?.open === 0 ? await otherShards(values) : undefined;
  if (what === undefined) return [];
  const { queue, shards } = values;
  const checked = shards === 1 ? `${queue} as one shard` : `${shards} shards of ${queue}`;
  const said = `nothing is open in ${checked}, and ${what}`;
  return [{ level: 'warning', check: 'queue', what: said, advice: SAME_SHARDS }];
}
