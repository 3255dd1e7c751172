/**
 * Servers that lack a command, as those that one rents may: it works without, or the error names the command.
 * @module-tag own-server
 * @module-tag one-server
 * @module-tag processes
 */
import { Connection, QueueErrors, RunningCommands } from '@piecework/protocol';
import { Redis } from 'ioredis';
import { Admin, Piecework, type PieceworkError, Worker } from 'piecework';
import { expect } from 'vitest';
import { commandsOf, LATER } from '../../packages/piecework/dist/operate/doctor/servers/rights.js';
import { ROLES } from '../../packages/piecework/dist/operate/doctor/servers/roles.js';
import { OPTION_SINCE, SINCE } from '../../scripts/command-versions.mjs';
import { STARTS, startCli } from '../support/cli.js';
import { type Flow, Log, numbers, test } from '../support/flow.js';
import { partOf, playsAll } from '../support/mode.js';
import { startOwnRedis, testRedis } from '../support/redis.js';
import { until } from '../support/until.js';

const CASES: readonly (readonly [lacks: string, says: RegExp | 'works', doctor: RegExp])[] = [
  ['hrandfield', 'works', /ok .*does not have/],
  ['spublish', 'works', /warning .*command spublish\. .*notices/],
  ['ssubscribe', 'works', /warning .*command ssubscribe\. .*notices/],
  ['client', 'works', /warning .*command client\|id\. .*pop/],
  ['command', 'works', /warning could not be checked: .*command command /],
  ['acl', 'works', /warning .*rights could not be checked: .*command acl /],
  ['cluster', 'works', /^(?![\s\S]*cluster)/],
  ['evalsha', /: the server does not have the command evalsha /, /error .*command evalsha, which/],
  ['blmpop', /: the server does not have the command blmpop /, /error .*blmpop, which worker need/],
  ['xreadgroup', /: the server does not have the command xreadgroup /, /error .*xreadgroup.*enter/],
];

test.for(CASES)('a server without %s', async ([command, says, doctor], { flow }) => {
  const { url, close } = await startOwnRedis(['--rename-command', command, '']);
  flow.after(() => close());
  const ended = await fateOf(flow, url);
  if (says === 'works') expect(ended).toBe('works');
  else {
    expect(ended).toMatchObject({ code: 'NO_RIGHT', retryable: false });
    expect((ended as Error).message).toMatch(says);
    expect((ended as Error).message).not.toContain('args beginning');
  }
  await using admin = new Admin({ redis: url, queue: flow.queue });
  const found = await admin.doctor().then(
    (findings) =>
      findings
        .filter(({ check }) => check === 'commands' || check === 'acl')
        .map((one) => `${one.level} ${one.what}`),
    (error: Error) => [error.message],
  );
  expect(found.join('\n')).toMatch(doctor);
});

/** What a run says that ends because of a command: the runs wait for most of their time, so they play together. */
async function refusedRun(flow: Flow, redis: string, args: readonly string[]): Promise<string> {
  const run = startCli(['run', '--input', '-', ...args], {
    ...{ redis, input: 'a\nb\n' },
  });
  flow.after(() => run.child.kill('SIGKILL'));
  const { code, stderr } = await run.finished;
  expect(code).toBe(1);
  return stderr;
}

test('`run` on a server without a command ends, and names the command', {
  timeout: 120_000,
}, async ({ flow }) => {
  const play = async (command: string) => {
    const { url, close } = await startOwnRedis(['--rename-command', command, '']);
    flow.after(() => close());
    const says = new RegExp(`the server does not have the command ${command} .*operations`, 's');
    expect(await refusedRun(flow, url, ['--exec', 'cat', '--queue', flow.queue])).toMatch(says);
  };
  await Promise.all(['blmpop', 'xreadgroup'].map(play));
});

/** Of commands that a worker needs once something has ended: without them it takes work, and cannot report it. */
test('`run` as a user without a command ends, and names the command', {
  timeout: 120_000,
}, async ({ flow }) => {
  const { url, close } = await startOwnRedis();
  flow.after(() => close());
  const operator = new Redis(url);
  flow.after(() => operator.disconnect());
  const args = ['--exec', 'false', '--attempts', '2', '--lease-ms', '1000'];
  const play = async (command: string) => {
    const rights = ['on', '>secret', '~*', '&*', '+@all', `-${command}`];
    await operator.call('ACL', 'SETUSER', command, ...rights);
    const redis = url.replace('redis://', `redis://${command}:secret@`);
    const own = ['--queue', `${flow.queue}-${command}`];
    expect(await refusedRun(flow, redis, [...args, ...own])).toMatch(
      new RegExp(`the Redis user may not run .*\\b${command}\\b.*operations`, 's'),
    );
  };
  await Promise.all(['xclaim', 'xack', 'hdel', 'zrem'].map(play));
});

/** A server without this command, a producer and a notifier there. */
async function without(flow: Flow, command: string) {
  const { url, close } = await startOwnRedis(['--rename-command', command, '']);
  flow.after(() => close());
  const connection = Connection.open(url);
  flow.after(() => connection.close());
  const pw = new Piecework({ redis: url, queue: flow.queue });
  flow.after(() => pw.close());
  return { url, connection, pw };
}

test('a wait whose time is up names the command without which nobody learns what it waits for', async ({
  flow,
}) => {
  const { pw } = await without(flow, 'hgetall');
  const request = await pw.submit(numbers(3), { id: flow.id('unseen') });
  const says = expect.stringMatching(/not within 30 ms; .*does not have the command hgetall /);
  // The read of the reason is given up when the machine is so slow that it takes a second.
  const named = { name: 'TimeoutError', message: says, cause: { code: 'NO_RIGHT' } };
  await until(async () => {
    const error = await request.completion({ timeoutMs: 30 }).catch((thrown: unknown) => thrown);
    if ((error as Error).cause === undefined) return false;
    expect(error).toMatchObject(named);
    return true;
  });
});

test('without xpending the reader of what runs names the command, and takes no request for gone', async ({
  flow,
}) => {
  const { url, close } = await startOwnRedis();
  flow.after(() => close());
  await using pw = new Piecework({ redis: url, queue: flow.queue });
  // So many are not kept in the compact form.
  const { id } = await pw.submit(numbers(600), { id: flow.id('running') });
  const operator = new Redis(url);
  flow.after(() => operator.disconnect());
  const rights = ['on', '>secret', '~*', '&*', '+@all', '-xpending'];
  await operator.call('ACL', 'SETUSER', 'app', ...rights);
  const connection = Connection.open(url.replace('redis://', 'redis://app:secret@'));
  flow.after(() => connection.close());
  await expect(new RunningCommands(connection, id).workers()).rejects.toMatchObject({
    code: 'NO_RIGHT',
    message: expect.stringContaining('+xpending'),
  });
});

test('without MULTI a queue remembers its errors, and the doctor reads its requests', async ({
  flow,
}) => {
  const { url, connection, pw } = await without(flow, 'multi');
  const { id } = await pw.submit(numbers(600), { id: flow.id('open') });
  const errors = new QueueErrors(connection, flow.queue);
  const one = { at: 1, requestId: id, index: 0, attempt: 1, worker: 'w', name: 'E', message: 'm' };
  await errors.note([one, { ...one, at: 2, index: 1 }]);
  await errors.note([one]);
  expect((await errors.last()).map(({ index }) => index)).toEqual([1, 0]);
  await using admin = new Admin({ redis: url, queue: flow.queue });
  expect((await admin.doctor()).filter(({ check }) => check === 'books')).toEqual([
    expect.objectContaining({ level: 'ok' }),
  ]);
});

test('an error of the queue that cannot be stored names the command', async ({ flow }) => {
  const { connection } = await without(flow, 'zremrangebyrank');
  const one = { at: 1, requestId: 'r', index: 0, attempt: 1, worker: 'w', name: 'E', message: 'm' };
  await expect(new QueueErrors(connection, flow.queue).note([one])).rejects.toMatchObject({
    code: 'NO_RIGHT',
    message: expect.stringContaining('the command zremrangebyrank '),
  });
});

test('`run` continues when the right that its workers lacked is granted soon', async ({ flow }) => {
  const { url, close } = await startOwnRedis();
  flow.after(() => close());
  const operator = new Redis(url);
  flow.after(() => operator.disconnect());
  const rights = ['on', '>secret', '~*', '&*', '+@all'];
  await operator.call('ACL', 'SETUSER', 'app', ...rights, '-blmpop');
  const redis = url.replace('redis://', 'redis://app:secret@');
  // They take longer than a process waits for the right.
  const work = ['--exec', "sh -c 'sleep 1; cat'", '--concurrency', '1', '--processes', '1'];
  const args = ['run', ...work, '--input', '-', '--queue', flow.queue];
  const run = startCli(args, { redis, input: numbers(9).join('\n') });
  const denied = async () => String(await operator.call('ACL', 'LOG')).includes('blmpop');
  await until(denied, { what: 'a worker lacks the right', ...STARTS });
  await operator.call('ACL', 'SETUSER', 'app', '+blmpop');
  const { code, stderr } = await run.finished;
  expect(code, stderr).toBe(0);
});

/** Those of containers are renamed as a whole. By PING and INFO a test sees that its server has started. */
const others = [...new Set(ROLES.flatMap(commandsOf).map((name) => name.split('|')[0] as string))]
  .filter(
    (name) =>
      !['ping', 'info', ...LATER].includes(name) && !CASES.some(([command]) => command === name),
  )
  .toSorted();

test('a server without any other command', { timeout: 600_000 }, async ({ flow }) => {
  if (!playsAll) return;
  const wrong: string[] = [];
  for (const command of partOf(others)) {
    const { url, close } = await startOwnRedis(['--rename-command', command, '']);
    const ended = await fateOf(flow, url, command).catch((error: unknown) => error);
    await close();
    const named = (ended as Partial<PieceworkError>).code === 'NO_RIGHT';
    if (ended !== 'works' && !(named && String(ended).includes(command)))
      wrong.push(`${command}: ${ended}`);
  }
  expect(wrong).toEqual([]);
});

/** A request from its submission to its results. Answers the first error of the caller or the worker. */
async function fateOf(flow: Flow, redis: string, name = ''): Promise<unknown> {
  const at = { redis, queue: `${flow.queue}${name}` };
  await using worker = new Worker({ ...at, handler: (n: number) => n, logger: new Log() as never });
  await using pw = new Piecework(at);
  const ended: unknown[] = [];
  worker.on('error', (error) => ended.push(error));
  const works = async () => {
    await worker.start();
    const request = await pw.submit(numbers(30), { id: flow.id(`one${name}`), window: 10 });
    await request.completion();
    const values: unknown[] = [];
    for await (const { value } of request.results({ order: 'index' })) values.push(value);
    expect(values).toEqual(numbers(30));
    return 'works';
  };
  works().then(
    (said) => ended.push(said),
    (error) => ended.push(error),
  );
  await until(() => ended.length > 0, { timeoutMs: 60_000, what: 'it works, or says why not' });
  return ended[0];
}

test('the list says since when there is each command, as the server does', async ({ flow }) => {
  const client = new Redis((await testRedis()).url);
  flow.after(() => client.disconnect());
  const all = [...new Set(ROLES.flatMap(commandsOf))];
  const docs = pairs(await client.call('COMMAND', 'DOCS', ...all));
  const short = (version: unknown) => String(version).split('.').slice(0, 2).join('.');
  const listed = SINCE.flatMap(([version, names]) => names.map((name) => [name, version] as const));
  expect(listed.map(([name]) => name).toSorted()).toEqual(all.toSorted());
  for (const [name, version] of listed) {
    const said = docs.get(name);
    if (said) expect(short(pairs(said).get('since')), name).toBe(version);
  }
  for (const [name, options] of Object.entries(OPTION_SINCE))
    expect(JSON.stringify(docs.get(name)), name).toContain(Object.values(options)[0]);
});

const pairs = (reply: unknown) => {
  const list = reply as unknown[];
  return new Map(list.flatMap((one, i) => (i % 2 === 0 ? [[String(one), list[i + 1]]] : [])));
};
