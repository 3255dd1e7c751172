import { DEV_SERVER } from '@piecework/protocol';
import type { Redis } from 'ioredis';
import { error, type Finding, ok, warning } from '../finding.js';
import type { Server } from './servers.js';

/** Checks what a restart of each server may lose, and whether it can write its files. */
export async function checkPersistence(servers: readonly Server[]): Promise<Finding[]> {
  const findings = await Promise.all(servers.map(checkServer));
  return findings.flat();
}

const AOF = 'set appendonly yes and appendfsync everysec';

async function checkServer({ name, info, client }: Server): Promise<Finding[]> {
  const failed = failures(name, info.text.bind(info));
  if (failed.length > 0) return failed;
  if (info.text('aof_enabled') === '1') {
    const fsync = await setting(client, 'appendfsync');
    if (fsync === undefined) return [untold(`${name}: append-only file`, 'appendfsync')];
    if (fsync === 'no') {
      const what = `${name}: appendfsync is no: a crash of its machine may lose about 30 s of writes`;
      return [warning('persistence', what, 'set appendfsync everysec, or always')];
    }
    const lost = fsync === 'always' ? 'nothing' : 'about a second of writes';
    return [ok('persistence', `${name}: append-only file; a crash loses ${lost}`)];
  }
  const save = await setting(client, 'save');
  if (save === undefined) return [untold(`${name}: no append-only file`, 'save')];
  if (save === '' && (await isOfDev(client)))
    return [ok('persistence', `${name}: a server of \`piecework dev\`: its data ends with it`)];
  if (save === '') {
    const what = `${name}: neither append-only file nor snapshots: a restart loses everything`;
    return [warning('persistence', what, AOF)];
  }
  const sinceMs = Date.now() - info.number('rdb_last_save_time') * 1_000;
  const changes = info.number('rdb_changes_since_last_save');
  const what = `${name}: snapshots only; a crash now would lose ${changes} changes, the last ${Math.max(0, Math.round(sinceMs / 1_000))} s`;
  return [warning('persistence', what, AOF)];
}

/** What a crash would lose depends on a setting that the server does not show to this user, or to any. */
function untold(known: string, name: string): Finding {
  const what = `${known}; what a crash would lose could not be checked: the server does not show \`${name}\``;
  const advice = 'run this as a user with +config|get, or ask whoever operates the server';
  return warning('persistence', what, advice);
}

/** Redis refuses all writes (MISCONF) when it cannot write its file. */
function failures(name: string, text: (field: string) => string): Finding[] {
  const advice = "read the server's log: its disk may be full, or its folder not writable";
  const failed = [
    ['aof_last_write_status', 'cannot write its append-only file'],
    ['aof_last_bgrewrite_status', 'cannot rewrite its append-only file'],
    ['rdb_last_bgsave_status', 'cannot write its snapshot, and may refuse all writes'],
  ] as const;
  return failed
    .filter(([field]) => text(field) === 'err')
    .map(([, what]) => error('persistence', `${name} ${what}`, advice));
}

/** Whether it is a server of `piecework dev`, to try things with. */
export async function isOfDev(client: Redis): Promise<boolean> {
  return (await setting(client, 'proc-title-template'))?.includes(DEV_SERVER) ?? false;
}

/** A setting of the server; undefined when it does not show it, as without the right to ask. */
export async function setting(client: Redis, name: string): Promise<string | undefined> {
  const answer = await client.config('GET', name).catch(() => []);
  return (answer as string[])[1];
}
