import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

/*
 * What a command loads before it does anything. Its start is most of the time of a short command, and a worker process
 * starts again after each crash. The addresses are those of no server: each command fails when it has loaded all that it
 * needs.
 */

const PROGRAM = fileURLToPath(new URL('../../packages/cli/bin/piecework.js', import.meta.url));
const PACKAGES = fileURLToPath(new URL('../../packages/', import.meta.url));
const HOOK = new URL('../support/programs/loaded-modules.mjs', import.meta.url).href;
const HANDLER = fileURLToPath(new URL('../support/programs/handler.mjs', import.meta.url));
const NO_SERVER = ['--redis', 'redis://127.0.0.1:1'];

/**
 * What our packages depend on directly. What comes along with that is not ours to choose; safe-stable-stringify, which
 * the producer uses, also comes along with pino.
 */
const DEPENDENCIES = new Set(
  readdirSync(PACKAGES).flatMap((name) =>
    Object.keys(JSON.parse(readFileSync(`${PACKAGES}${name}/package.json`, 'utf8')).dependencies),
  ),
);

interface Loaded {
  /** Modules of ours, as 'worker/options.js'. */
  readonly ours: string[];
  /** Packages that ours depend on, as 'pino'. */
  readonly others: string[];
  /** Those of `others` of which ES modules import a file. */
  readonly imported: string[];
}

/** The modules that a command loads. */
function loadedBy(args: readonly string[]): Loaded {
  const { REDIS_URL: _, ...env } = process.env;
  const started = spawnSync(process.execPath, ['--import', HOOK, PROGRAM, ...args], {
    env,
    encoding: 'utf8',
  });
  const lines = started.stdout.split('\n').filter((line) => /^(require )?file:/.test(line));
  const imports = lines.filter((line) => !line.startsWith('require'));
  const named = (pattern: RegExp, from = lines) =>
    from.flatMap((line) => {
      const [, ...parts] = pattern.exec(line) ?? [];
      return parts.length > 0 ? [parts.join('/')] : [];
    });
  const packages = (from: readonly string[]) => {
    const names = named(/.*node_modules\/((?:@[^/]+\/)?[^/]+)/, [...from]);
    return [...new Set(names)].filter((name) => DEPENDENCIES.has(name)).sort();
  };
  return {
    ours: named(/packages\/([a-z]+)\/dist\/(.*)$/, imports),
    others: packages(lines),
    imported: packages(imports),
  };
}

const SMALL = ['worker/options.js', 'views/shape/format.js'];

/** The packages of ours of which it loads more than the option tables and the writing of numbers. */
const packagesOf = (ours: readonly string[]) =>
  [
    ...new Set(ours.filter((name) => !SMALL.includes(name)).map((name) => name.split('/')[0])),
  ].sort();

describe('a command loads only what it needs', () => {
  it('--version: no other package of ours', () => {
    const { ours, others } = loadedBy(['--version']);
    expect(packagesOf(ours)).toEqual(['cli']);
    expect(others).toEqual(['commander']);
  });

  it.each([
    ['--help', ['--help']],
    ['run --help', ['run', '--help']],
    ['completion', ['complete', '--', 'piecework', 'st']],
    ['wrong usage', ['submit', '--input', PROGRAM, '--limit', '0', ...NO_SERVER]],
  ])('%s: flags and option tables, no client of Redis and no log', (_, args) => {
    const { ours, others } = loadedBy(args);
    expect(ours.filter((name) => name.startsWith('cli/flags/'))).not.toEqual([]);
    const tables = /^(notifier|producer|piecework|worker)\/(.+\/)?([a-z]+-)?(options|roles)\.js$/;
    const light = /^(cli\/|views\/shape\/format|protocol\/(contract|common|redis\/redis-url))/;
    expect(ours.filter((name) => !tables.test(name) && !light.test(name))).toEqual([]);
    for (const name of ['ioredis', 'pino', 'prom-client']) expect(others).not.toContain(name);
  });

  it('--help: nothing that reads inputs, or prints tables and progress', () => {
    const { others } = loadedBy(['--help']);
    expect(others).toEqual(['@bomb.sh/tab', 'commander', 'nanoid', 'picocolors', 'pretty-ms']);
  });

  it('status: neither workers and queues, nor other commands and the doctor', () => {
    const { ours, others } = loadedBy(['status', 'r', ...NO_SERVER]);
    expect(packagesOf(ours)).toEqual(['cli', 'notifier', 'piecework', 'producer', 'protocol']);
    expect(ours.filter((name) => name.startsWith('cli/commands/'))).toEqual([
      ...['cli/commands/status.js', 'cli/commands/open-piecework.js'],
    ]);
    expect(ours).not.toContain('piecework/operate/doctor/doctor.js');
    for (const name of ['pino', 'cli-progress']) expect(others).not.toContain(name);
  });

  it('run: in the parent no Worker, no log of one, and no Redis of its own when one is given', () => {
    const { ours, others } = loadedBy(['run', '--input', PROGRAM, '--exec', ':', ...NO_SERVER]);
    expect(ours).toContain('cli/run/run.js');
    expect(packagesOf(ours)).toEqual(['cli', 'notifier', 'piecework', 'producer', 'protocol']);
    for (const name of ['pino', 'cli-progress']) expect(others).not.toContain(name);
  });

  it('worker: nothing that submits or reads requests, and nothing of a fleet', () => {
    const { ours, others } = loadedBy(['worker', '--exec', ':', ...NO_SERVER]);
    expect(packagesOf(ours)).toEqual(['cli', 'protocol', 'worker']);
    expect(ours).toContain('worker/worker.js');
    expect(ours).not.toContain('cli/processes/fleet.js');
    expect(others).toEqual([
      ...['cluster-key-slot', 'commander', 'ioredis', 'nanoid', 'p-timeout', 'pino'],
      ...['safe-stable-stringify', 'split2'],
    ]);
  });

  it('worker --handler: nothing that runs programs', () => {
    const { ours, others } = loadedBy(['worker', '--handler', HANDLER, ...NO_SERVER]);
    expect(ours).toContain('worker/worker.js');
    expect(ours.filter((name) => name.startsWith('cli/exec/'))).toEqual(['cli/exec/field-name.js']);
    expect(others).not.toContain('split2');
  });

  it('worker --processes: in the parent no client of Redis, no scripts and no Worker', () => {
    const { ours, others } = loadedBy(['worker', '--exec', ':', '--processes', '2', ...NO_SERVER]);
    expect(ours).toContain('cli/processes/fleet.js');
    expect(ours).not.toContain('worker/worker.js');
    const outside = /^protocol\/(?!contract|common|redis\/redis-url)/;
    expect(ours.filter((name) => outside.test(name))).toEqual([]);
    expect(others).toEqual(['commander', 'pino', 'safe-stable-stringify']);
  });

  it('worker --processes --health-port: the parent serves its health without a client of Redis', () => {
    const flags = ['--exec', ':', '--processes', '2', '--health-port', '0', ...NO_SERVER];
    const { ours, others } = loadedBy(['worker', ...flags]);
    expect(ours).toContain('piecework/processes/health-server.js');
    expect(others).toEqual(['commander', 'pino', 'safe-stable-stringify']);
  });

  it('worker --metrics-port: what measures, and nothing that reads queues', () => {
    const { ours, others } = loadedBy([
      ...['worker', '--handler', HANDLER, '--metrics-port', '0', ...NO_SERVER],
    ]);
    expect(ours).toContain('metrics/workers/worker-metrics.js');
    expect(ours.filter((name) => /^metrics\/queues/.test(name))).toEqual([]);
    expect(others).toContain('prom-client');
  });

  it('worker --processes --metrics-port: the parent adds up without a client of Redis', () => {
    const flags = ['--exec', ':', '--processes', '2', '--metrics-port', '0', ...NO_SERVER];
    const { ours, others } = loadedBy(['worker', ...flags]);
    expect(ours.filter((name) => name.startsWith('metrics/'))).toEqual([
      ...['metrics/fleet.js', 'metrics/fleet/fleet-metrics.js'],
    ]);
    expect(others).toEqual(['commander', 'pino', 'prom-client', 'safe-stable-stringify']);
  });

  // Node would search the long text of ioredis for the names of its exports: see ioredis-classes.cts.
  it.each([
    ['status', ['status', 'r', ...NO_SERVER]],
    ['worker', ['worker', '--exec', ':', ...NO_SERVER]],
  ])('%s: ioredis is required, not imported', (_, args) => {
    const { others, imported } = loadedBy(args);
    expect(others).toContain('ioredis');
    expect(imported).not.toContain('ioredis');
  });
});
