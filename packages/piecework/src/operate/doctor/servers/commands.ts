import { redisError } from '@piecework/protocol';
import { error, type Finding, many, ok, some, warning } from '../finding.js';
import type { Users } from './acl.js';
import { commandsOf, LATER, OF_CLUSTERS, OPTIONAL, usersOf } from './rights.js';
import { OTHER_QUEUES, ROLES, type Role } from './roles.js';
import type { Server } from './servers.js';

/** What works on a queue of requests. */
const OF_REQUESTS = ROLES.filter((role) => !OTHER_QUEUES.some((other) => other === role));

/** Checks whether each server has every command of the roles: those whose users are given, or all of a queue. */
export async function checkCommands(servers: readonly Server[], users: Users): Promise<Finding[]> {
  const given = Object.keys(users) as Role[];
  const roles = given.length > 0 ? given : OF_REQUESTS;
  const all = [...new Set(roles.flatMap(commandsOf))].sort();
  const findings = servers.map(async ({ name, client, info }) => {
    const isNode = info.text('cluster_enabled') === '1';
    const names = all.filter((command) => isNode || !OF_CLUSTERS.includes(command));
    const known = await client.call('COMMAND', 'INFO', ...names).catch((thrown: unknown) => {
      throw redisError(thrown, `ask ${name} which commands it has`);
    });
    return findingsOf(name, roles, lacking(names, known as unknown[]));
  });
  return (await Promise.all(findings)).flat();
}

/** The commands without an answer. A server that answers for no subcommand at all does not tell about them. */
function lacking(names: readonly string[], known: readonly unknown[]): string[] {
  const isSub = (name: string) => name.includes('|');
  const tells = names.some((name, i) => isSub(name) && known[i]);
  return names.filter((name, i) => !known[i] && (tells || !isSub(name)));
}

function findingsOf(server: string, roles: readonly Role[], missing: readonly string[]): Finding[] {
  const needed = missing.filter((command) => OPTIONAL[command] === undefined);
  const optional = missing.filter((command) => OPTIONAL[command] !== undefined);
  const findings = needed.map((command) => {
    const { scripts, roles: by } = usersOf(command, roles);
    const what = `${server} does not have the command ${command}, which ${by.join(', ')} need`;
    const called =
      scripts.length > 0 ? ` (${many(scripts.length, 'script')}: ${some(scripts)})` : '';
    const advice = 'enable it, or use another server: docs/operations.md#commands lists all';
    return error('commands', `${what}${called}`, advice);
  });
  for (const command of optional) {
    const what = `${server} does not have the command ${command}. It is for ${OPTIONAL[command]}`;
    const works = 'everything else works; docs/operations.md#commands lists all';
    findings.push(
      LATER.includes(command) ? ok('commands', what) : warning('commands', what, works),
    );
  }
  if (missing.length > 0) return findings;
  return [ok('commands', `${server} has every command that is used (${roles.join(', ')})`)];
}
