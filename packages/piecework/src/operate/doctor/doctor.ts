import {
  type Connection,
  ConnectionError,
  type QueueCommands,
  redisError,
  ServerError,
  type Shards,
} from '@piecework/protocol';
import type { CheckedOptions } from './doctor-options.js';
import { CHECKS, type Check, error, type Finding, warning } from './finding.js';
import { checkExpiry } from './queue/expiry.js';
import { checkOrphans } from './queue/orphans.js';
import { checkName, checkQueue } from './queue/queue-state.js';
import { repair } from './queue/repair.js';
import { checkRequests } from './queue/requests.js';
import { checkAcl, type Users } from './servers/acl.js';
import { checkClocks } from './servers/clocks.js';
import { checkBrokenCluster, checkCluster } from './servers/cluster.js';
import { checkCommands } from './servers/commands.js';
import { checkMemory } from './servers/memory.js';
import { checkPersistence } from './servers/persistence.js';
import { checkReplicas } from './servers/replicas.js';
import { OTHER_QUEUES, type Role } from './servers/roles.js';
import { serverOfQueue, serversOf, timeOf } from './servers/servers.js';
import { checkVersion } from './servers/version.js';

/**
 * Checks the servers and one queue, shard by shard. Reads a bounded number of keys at a time while work continues. A
 * check that cannot be made, as without the right to it, is a finding too.
 * @throws ConnectionError when Redis cannot be reached
 */
export async function doctor(
  connection: Connection,
  shards: Shards,
  options: CheckedOptions,
  reopen: () => Promise<string[]>,
): Promise<Finding[]> {
  const unusable = await whyUnusable(connection);
  if (unusable) return unusable;
  const { servers, away } = await serversOf(connection);
  const now = async (queue: QueueCommands) => {
    const { client } = await serverOfQueue(connection, servers, queue.keys);
    return (await timeOf(client)).at;
  };
  const examination = new Examination(shards);
  for (const { name, why } of away) {
    const advice = 'start it again, or let a replica of it take over';
    examination.findings.push(error('cluster', `${name} does not answer: ${why}`, advice));
  }
  const check = examination.check.bind(examination);
  const checkEach = examination.checkEachShard.bind(examination);
  if (options.repair) {
    const opened: string[] = [];
    await check('repair', async () => {
      opened.push(...(await reopen()));
      await checkEach('repair', async (queue) => {
        const ids = opened.filter((id) => shards.of(id) === queue);
        return repair(connection, queue, ids, await now(queue));
      });
      return [];
    });
  }
  await check('version', () => checkVersion(servers));
  await check('commands', () => checkCommands(servers, options.users));
  await check('memory', () => checkMemory(servers));
  await checkEach('memory', (queue) => checkExpiry(connection, queue, servers));
  await check('persistence', () => checkPersistence(servers));
  await check('replicas', () => checkReplicas(servers));
  await check('cluster', () => checkCluster(connection, servers));
  await check('clocks', () => checkClocks(servers));
  const { whole, sharded } = split(options.users);
  if (whole) await check('acl', () => checkAcl(servers, shards.queue, whole));
  if (sharded) await checkEach('acl', (queue) => checkAcl(servers, queue.keys.queue, sharded));
  await check('queue', () => checkName(connection, shards));
  await checkEach('queue', async (queue) => checkQueue(connection, queue, await now(queue)));
  await checkEach('books', async (queue) =>
    checkRequests(connection, queue, await now(queue), options.slowMs),
  );
  if (options.deep || options.repair)
    await check('orphans', async () => [await checkOrphans(connection, shards)]);
  return examination.findings.sort((a, b) => rankOf(a) - rankOf(b));
}

/**
 * Findings of a server that no client can use; undefined: it can be used.
 * @throws ConnectionError when Redis cannot be reached
 */
async function whyUnusable(connection: Connection): Promise<Finding[] | undefined> {
  try {
    await connection.check();
  } catch (thrown) {
    const down = thrown instanceof ServerError && thrown.code === 'CLUSTER_DOWN';
    if (down || thrown instanceof ConnectionError) {
      const broken = await checkBrokenCluster(connection, thrown.message);
      if (broken.length > 0) return broken;
    }
    if (!(thrown instanceof ServerError)) throw thrown;
    // A server that is too old, or would evict keys, is a finding of the checks.
    if (thrown.code === 'CLUSTER') return [error('cluster', thrown.message, '')];
  }
  return undefined;
}

type Work<Args extends unknown[]> = (...args: Args) => Promise<Finding[]> | Finding[];

/** Collects findings. A check that throws is a finding itself. */
class Examination {
  readonly findings: Finding[] = [];
  readonly #shards: Shards;

  constructor(shards: Shards) {
    this.#shards = shards;
  }

  async check(check: Check, work: Work<[]>): Promise<void> {
    try {
      this.findings.push(...(await work()));
    } catch (thrown) {
      if (!(thrown instanceof Error)) throw thrown;
      this.findings.push(couldNotCheck(check, thrown));
    }
  }

  /** With several shards, each finding begins with the name of its shard. */
  async checkEachShard(check: Check, work: Work<[queue: QueueCommands]>): Promise<void> {
    for (const queue of this.#shards.all) {
      const before = this.findings.length;
      await this.check(check, () => work(queue));
      if (this.#shards.all.length === 1) continue;
      const found = this.findings.splice(before);
      const named = ({ what }: Finding) => `${queue.keys.queue}: ${what}`;
      this.findings.push(...found.map((finding) => ({ ...finding, what: named(finding) })));
    }
  }
}

/** As in CHECKS; but a full memory comes first, as other findings may follow from it. */
const rankOf = ({ check, level }: Finding) =>
  check === 'memory' && level === 'error' ? -1 : CHECKS.indexOf(check);

/** Separates users of queues without shards from those of a queue of requests, which is checked without users, too. */
function split(users: Users): { whole?: Users; sharded?: Users } {
  const given = Object.entries(users) as [Role, string][];
  const isOther = ([role]: [Role, string]) => OTHER_QUEUES.some((other) => other === role);
  const [whole, sharded] = [given.filter(isOther), given.filter((one) => !isOther(one))];
  return {
    ...(whole.length > 0 ? { whole: Object.fromEntries(whole) } : {}),
    ...(whole.length === 0 || sharded.length > 0 ? { sharded: Object.fromEntries(sharded) } : {}),
  };
}

/** What the doctor is for: if these could not be checked, that is an error. */
const SUBJECT: readonly Check[] = ['queue', 'books'];

function couldNotCheck(check: Check, thrown: Error): Finding {
  const { code, message } = redisError(thrown, 'ask');
  const what = `could not be checked: ${message}`;
  if (code !== 'NO_RIGHT') return error(check, what, 'check the server, then run this again');
  const level = SUBJECT.includes(check) ? error : warning;
  return level(check, what, 'run this as an admin: docs/operations.md lists the rights');
}
