import type { Command } from 'commander';
import { type Finding, Piecework } from 'piecework';
import { addFlags, commonFlags, doctorFlags, readFlags, usersOf } from './flags.js';
import { otherShards, SAME_SHARDS } from './other-shards.js';
import { existingRedis } from './redis-url.js';
import { wrapped } from './table.js';

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

/** `doctor`: what is wrong with the servers and a queue, and what to do. Exit 1 with an error. */
export function doctorCommand(program: Command): void {
  const command = program
    .command('doctor')
    .description('look for what is wrong with Redis and a queue, and say what to do');
  addFlags(command, commonFlags, doctorFlags).action(async (given: Record<string, unknown>) => {
    const values = readFlags<DoctorValues>(given, commonFlags, doctorFlags);
    const { deep, repair, users, slowMs } = values;
    // Without the look that other commands begin with: what it refuses is to be told here.
    const { queue, shards } = values;
    await using pw = new Piecework({ redis: existingRedis(values.redis), queue, shards });
    const asked = {
      ...(users === undefined ? {} : { users: usersOf(users) }),
      ...(slowMs === undefined ? {} : { slowMs }),
    };
    const findings = await pw.admin.doctor({ deep, repair, ...asked });
    findings.push(...(await shardsAmiss(pw, values)));
    for (const finding of findings)
      console.log(values.json ? JSON.stringify(finding) : lines(finding));
    if (findings.some(({ level }) => level === 'error')) process.exitCode = 1;
  });
}

/** A queue in which nothing is open is well, unless it was looked for with a wrong number of shards. */
async function shardsAmiss({ admin }: Piecework, values: DoctorValues): Promise<Finding[]> {
  const counts = await admin.counts().catch(() => undefined);
  const what = counts?.open === 0 ? await otherShards(values) : undefined;
  if (what === undefined) return [];
  const { queue, shards } = values;
  const looked = shards === 1 ? `${queue} as one shard` : `${shards} shards of ${queue}`;
  const said = `nothing is open in ${looked}, and ${what}`;
  return [{ level: 'warning', check: 'queue', what: said, advice: SAME_SHARDS }];
}

/** Where the words of a finding begin. */
const INDENT = 22;

function lines({ level, check, what, advice }: Finding): string {
  const head = `${level.padEnd(9)}${check.padEnd(13)}${wrapped(what, INDENT)}`;
  return advice === '' ? head : `${head}\n${' '.repeat(INDENT)}→ ${wrapped(advice, INDENT + 2)}`;
}
