import { aloneAtNodes, type Connection, isCluster, Redis, redisError } from '@piecework/protocol';
import type { RedisOptions } from 'ioredis';
import { error, type Finding, many, ok, some, warning } from '../finding.js';
import { Info, type Server } from './servers.js';

const HASH_SLOTS = 16_384;

/** Checks that a cluster is whole: every hash slot served, no node failing, no slot being moved. */
export async function checkCluster(
  connection: Connection,
  servers: readonly Server[],
): Promise<Finding[]> {
  if (!isCluster(connection.client)) return [];
  const seen = await Promise.all(servers.map(readView)).catch((thrown: unknown) => {
    throw redisError(thrown, 'doctor');
  });
  const findings = [...coverage(seen), ...failing(seen), ...moving(seen)];
  if (servers.length < 3) {
    const what = `${many(servers.length, 'master')}: when one fails the others are no majority, and no replica takes over`;
    findings.push(warning('cluster', what, 'add masters, at least up to 3'));
  }
  if (findings.length > 0) return findings;
  return [ok('cluster', `${servers.length} masters serve all ${HASH_SLOTS} hash slots`)];
}

/**
 * Checks a cluster that no client can connect to, because ioredis accepts only whole ones: asks its nodes one by
 * one. No findings when none of them answers.
 */
export async function checkBrokenCluster({ client }: Connection, why: string): Promise<Finding[]> {
  if (!isCluster(client)) return [];
  const asked = await Promise.all(aloneAtNodes(client).map(askAlone));
  const seen = asked.filter((view) => view !== undefined);
  if (seen.length === 0) return [];
  const advice = 'repair the cluster; the findings below say where';
  return [
    error('cluster', `no client can connect: ${why}`, advice),
    ...coverage(seen),
    ...failing(seen),
    ...moving(seen),
  ];
}

async function askAlone(at: RedisOptions): Promise<View | undefined> {
  const client = new Redis(at);
  client.on('error', () => {});
  try {
    await client.connect();
    return await readView({ name: `${at.host ?? '127.0.0.1'}:${at.port}`, client });
  } catch {
    return undefined;
  } finally {
    client.disconnect();
  }
}

interface View {
  readonly name: string;
  readonly info: Info;
  /** Lines of CLUSTER NODES: id, address, flags, master, ping, pong, epoch, link, slots. */
  readonly nodes: readonly string[][];
}

async function readView({ name, client }: Pick<Server, 'name' | 'client'>): Promise<View> {
  const [info, nodes] = await Promise.all([client.cluster('INFO'), client.cluster('NODES')]);
  const lines = String(nodes).trim().split('\n');
  return { name, info: new Info(String(info)), nodes: lines.map((line) => line.split(' ')) };
}

function coverage(seen: readonly View[]): Finding[] {
  return seen.flatMap(({ name, info }) => {
    const assigned = info.number('cluster_slots_assigned');
    if (info.text('cluster_state') === 'ok' && assigned === HASH_SLOTS) return [];
    const what = `${name}: the cluster is ${info.text('cluster_state')}, ${assigned} of ${HASH_SLOTS} hash slots are assigned, ${info.text('cluster_slots_fail')} of them fail`;
    const advice =
      'start their master again, or run CLUSTER FAILOVER FORCE on a replica of it, or `redis-cli --cluster fix`; until then their requests stand still, and all requests if the slot of the queue is among them';
    return [error('cluster', what, advice)];
  });
}

function failing(seen: readonly View[]): Finding[] {
  const failed = new Set<string>();
  for (const { nodes } of seen) {
    for (const [, address = '', flags = ''] of nodes) {
      if (/\bfail\b|fail\?|noaddr/.test(flags)) failed.add(address.split('@')[0] as string);
    }
  }
  if (failed.size === 0) return [];
  const what = `${failed.size} of the cluster's nodes fail: ${some([...failed].sort())}`;
  const advice = 'start them again, or run CLUSTER FORGET on every other node';
  return [warning('cluster', what, advice)];
}

/** A node tells only of its own: `[93->-id]` leaves it, `[93-<-id]` comes. */
function moving(seen: readonly View[]): Finding[] {
  const slots = new Set<string>();
  for (const { nodes } of seen) {
    const mine = nodes.find(([, , flags = '']) => flags.includes('myself')) ?? [];
    for (const part of mine.slice(8)) {
      const slot = /^\[(\d+)-[<>]-/.exec(part)?.[1];
      if (slot) slots.add(slot);
    }
  }
  if (slots.size === 0) return [];
  const what = `hash slots are being moved: ${some([...slots])}`;
  const advice =
    'wait, if somebody moves them: requests there wait a little. If nobody does, the move was cut off: run `redis-cli --cluster fix`';
  return [warning('cluster', what, advice)];
}
