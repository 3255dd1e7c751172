import {
  type Connection,
  ConnectionError,
  LONGEST_DELAY_MS,
  type OptionTable,
  option,
  type QueueCommands,
  redisError,
  ServerError,
  type Shards,
} from '@piecework/protocol';
import { z } from 'zod';
import { checkAcl, type Users } from './acl.js';
import { checkClocks } from './clocks.js';
import { checkBrokenCluster, checkCluster } from './cluster.js';
import { checkExpiry } from './expiry.js';
import { CHECKS, type Check, error, type Finding, warning } from './finding.js';
import { checkMemory } from './memory.js';
import { checkOrphans } from './orphans.js';
import { checkPersistence } from './persistence.js';
import { checkQueue } from './queue-state.js';
import { repair } from './repair.js';
import { checkReplicas } from './replicas.js';
import { checkRequests } from './requests.js';
import { OTHER_QUEUES, ROLES, type Role } from './rights.js';
import { serverOfQueue, serversOf, timeOf } from './servers.js';
import { checkVersion } from './version.js';

export interface DoctorOptions {
  /** Also looks for requests that the queue does not know: goes through all keys (SCAN). @default false */
  readonly deep?: boolean | undefined;
  /**
   * First does what is safe: has living requests that the queue lost looked at again (goes through all
   * keys), and looks at the agenda now. @default false
   */
  readonly repair?: boolean | undefined;
  /**
   * ACL users whose rights are compared with what their role needs, as `{ worker: 'pw-worker' }`.
   * @default who asks, as admin
   */
  readonly users?: Users | undefined;
  /**
   * From when on a handler that runs is a warning, in ms. @default ten times the median of its request, at least
   * 60000; 600000 where no worker knows one
   */
  readonly slowMs?: number | undefined;
}

/** With the defaults. */
export type CheckedOptions = Required<Omit<DoctorOptions, 'slowMs'>> & DoctorOptions;

const user = z.string().regex(/^\S{1,128}$/);

export const doctorOptions: OptionTable = {
  deep: option.boolean(false),
  repair: option.boolean(false),
  users: option.custom(
    z.strictObject(Object.fromEntries(ROLES.map((role) => [role, user.optional()]))),
    `names of ACL users by role: ${ROLES.join(', ')}`,
    {},
  ),
  slowMs: option.ms(1, LONGEST_DELAY_MS),
};

/**
 * Looks at the servers and at one queue, shard by shard. Reads a bounded number of keys at a time while work goes on; a
 * check that cannot be made, as without the right to it, is a finding too.
 * @throws ConnectionError when Redis cannot be reached
 */
export async function doctor(
  connection: Connection,
  shards: Shards,
  options: CheckedOptions,
  reopen: () => Promise<string[]>,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  try {
    await connection.check();
  } catch (thrown) {
    const down = thrown instanceof ServerError && thrown.code === 'CLUSTER_DOWN';
    if (down || thrown instanceof ConnectionError) {
      const broken = await checkBrokenCluster(connection, thrown.message);
      if (broken.length > 0) return broken;
    }
    if (!(thrown instanceof ServerError)) throw thrown;
    // What is too old, or would evict, is found below.
    if (thrown.code === 'CLUSTER')
      return [error('cluster', thrown.message, 'name several nodes, or one of them twice')];
  }
  const { servers, away } = await serversOf(connection);
  for (const { name, why } of away) {
    const advice = 'bring it back, or have a replica of it take over';
    findings.push(error('cluster', `${name} cannot be asked: ${why}`, advice));
  }
  const now = async (queue: QueueCommands) => {
    const { client } = await serverOfQueue(connection, servers, queue.keys);
    return (await timeOf(client)).at;
  };
  const look = async (check: Check, work: () => Promise<Finding[]> | Finding[]) => {
    try {
      findings.push(...(await work()));
    } catch (thrown) {
      if (!(thrown instanceof Error)) throw thrown;
      findings.push(notLooked(check, thrown));
    }
  };
  /** Says of which shard what it finds is, where there are several. */
  const lookAtEach = async (
    check: Check,
    work: (queue: QueueCommands) => Promise<Finding[]> | Finding[],
  ) => {
    for (const queue of shards.all) {
      const before = findings.length;
      await look(check, () => work(queue));
      if (shards.all.length === 1) continue;
      const found = findings.splice(before);
      const named = ({ what }: Finding) => `${queue.keys.queue}: ${what}`;
      findings.push(...found.map((finding) => ({ ...finding, what: named(finding) })));
    }
  };
  if (options.repair) {
    let opened: string[] | undefined;
    await look('repair', async () => {
      opened = await reopen();
      return [];
    });
    const ids = opened as string[] | undefined;
    if (ids)
      await lookAtEach('repair', async (queue) =>
        repair(
          connection,
          queue,
          ids.filter((id) => shards.of(id) === queue),
          await now(queue),
        ),
      );
  }
  await look('version', () => checkVersion(servers));
  await look('memory', () => checkMemory(servers));
  await lookAtEach('memory', (queue) => checkExpiry(connection, queue, servers));
  await look('persistence', () => checkPersistence(servers));
  await look('replicas', () => checkReplicas(servers));
  await look('cluster', () => checkCluster(connection, servers));
  await look('clocks', () => checkClocks(servers));
  const { whole, sharded } = split(options.users);
  if (whole) await look('acl', () => checkAcl(servers, shards.queue, whole));
  if (sharded) await lookAtEach('acl', (queue) => checkAcl(servers, queue.keys.queue, sharded));
  await lookAtEach('queue', async (queue) => checkQueue(connection, queue, await now(queue)));
  await lookAtEach('books', async (queue) =>
    checkRequests(connection, queue, await now(queue), options.slowMs),
  );
  if (options.deep || options.repair)
    await look('orphans', async () => [await checkOrphans(connection, shards)]);
  return findings.sort((a, b) => rankOf(a) - rankOf(b));
}

/** As in CHECKS; memory that has come to its end goes first, as other findings may follow from it. */
const rankOf = ({ check, level }: Finding) =>
  check === 'memory' && level === 'error' ? -1 : CHECKS.indexOf(check);

/** Users of what has no shards, and those of a queue of requests; without any the latter is asked for nobody. */
function split(users: Users): { whole?: Users; sharded?: Users } {
  const given = Object.entries(users) as [Role, string][];
  const isOther = ([role]: [Role, string]) => OTHER_QUEUES.some((other) => other === role);
  const [whole, sharded] = [given.filter(isOther), given.filter((one) => !isOther(one))];
  return {
    ...(whole.length > 0 ? { whole: Object.fromEntries(whole) } : {}),
    ...(whole.length === 0 || sharded.length > 0 ? { sharded: Object.fromEntries(sharded) } : {}),
  };
}

/** What the doctor is asked about: who saw nothing of it cannot say that it is well. */
const SUBJECT: readonly Check[] = ['queue', 'books'];

function notLooked(check: Check, thrown: Error): Finding {
  const { code, message } = redisError(thrown, 'ask');
  const what = `could not be looked at: ${message}`;
  if (code !== 'NO_RIGHT') return error(check, what, 'see to the server, then ask again');
  const level = SUBJECT.includes(check) ? error : warning;
  return level(check, what, 'ask as an admin: docs/operations.md lists the rights');
}
