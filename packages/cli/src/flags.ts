import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { failuresOptions } from '@piecework/notifier';
import { dedupeOptions, type RequestOptions, requestOptions } from '@piecework/producer';
import {
  checkOption,
  InvalidOptionError,
  isRedisUrl,
  type OptionSpec,
  type OptionTable,
  option,
} from '@piecework/protocol';
import { workerOptions } from '@piecework/worker';
import { type Command, Option } from 'commander';
import {
  doctorOptions,
  listOptions,
  pauseQueueOptions,
  ROLES,
  runningOptions,
  updateOptions,
} from 'piecework/options';
import { z } from 'zod';
import { isFieldName } from './exec-command.js';

/**
 * The flags of the command line. Each is an option of the same name: its range and its default come
 * from the option's table, so that a flag and an option can never disagree.
 */
export interface Flag {
  readonly name: string;
  /** As commander wants it: '--limit <n>'. */
  readonly usage: string;
  readonly about: string;
  readonly spec: OptionSpec;
  readonly kind: 'number' | 'number or none' | 'text' | 'texts' | 'switch' | 'json' | 'time';
  /** The default in words, where it depends on something. */
  readonly otherwise?: string;
}

const text = (value: unknown) => typeof value === 'string' && value.length > 0;

/** Whether it may be a pattern: which files match is found out when they are read. */
const isPattern = (input: string) => /[*?[\](){}]/.test(input);

function isInput(value: unknown): boolean {
  return text(value) && (value === '-' || existsSync(String(value)) || isPattern(String(value)));
}

function isFile(value: unknown): boolean {
  return (
    text(value) && statSync(resolve(String(value)), { throwIfNoEntry: false })?.isFile() === true
  );
}

function flag(
  usage: string,
  about: string,
  spec: OptionSpec | undefined,
  kind: Flag['kind'] = 'text',
  otherwise?: string,
): Flag {
  const dashed = /--([a-z-]+)/.exec(usage)?.[1] ?? '';
  const name = dashed.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  if (!spec) throw new Error(`no option table has ${name}`);
  return { name, usage, about, spec, kind, ...(otherwise === undefined ? {} : { otherwise }) };
}

/** An option that is null for nothing is 'none' on the command line. */
const orNone = (spec: OptionSpec | undefined): OptionSpec | undefined =>
  spec && { ...spec, allowed: spec.allowed.replace('null', 'none') };

const custom = (check: (value: unknown) => boolean, allowed: string, byDefault?: unknown) =>
  option.custom(z.any().refine(check), allowed, byDefault);

/** Of every command. */
export const commonFlags: readonly Flag[] = [
  flag(
    '--redis <url>',
    'where Redis is (or REDIS_URL)',
    custom(
      (v) => text(v) && isRedisUrl(String(v)),
      'redis://HOST:PORT/DB (DB: a number), rediss://…, a socket path, URLs of cluster nodes with commas between them, or redis-sentinel://HOST,HOST/NAME',
    ),
  ),
  flag('--queue <name>', 'name of the queue', workerOptions['queue']),
  flag(
    '--shards <n>',
    'how many shards the queue has, the same for all who use it',
    workerOptions['shards'],
    'number',
  ),
  flag('--json', 'machine-readable output, one JSON value a line', option.boolean(false), 'switch'),
];

/** How a request is made of an input. */
export const requestFlags: readonly Flag[] = [
  flag(
    '--input <path...>',
    'files, folders, patterns in quotes such as "logs/**/*.gz", or - for standard input; gzip and zstd are decompressed',
    custom(isInput, 'a file or folder that exists, a pattern, or -'),
    'texts',
  ),
  flag(
    '--split <how>',
    'lines, ndjson, csv or tsv (with a header), files (their names), delimiter:X (such as \\0), or chunk:N (N lines each)',
    custom(
      (v) =>
        text(v) &&
        /^(lines|ndjson|csv|tsv|files|chunk:[1-9]\d{0,6}|delimiter:.{1,100})$/s.test(String(v)),
      'lines, ndjson, csv, tsv, files, delimiter:X or chunk:N',
    ),
    'text',
    'files of a folder, else lines',
  ),
  flag(
    '--batch <n>',
    'so many items for each sub-request, in an array',
    {
      ...option.integer(1, 1_000_000),
      default: undefined,
    },
    'number',
  ),
  flag(
    '--binary',
    'the items are bytes, not text: each is {"$binary":"<base64>"}, and --exec gets the bytes',
    option.boolean(false),
    'switch',
  ),
  flag(
    '--dry-run',
    'show what the first ten sub-requests would be, and do nothing',
    option.boolean(false),
    'switch',
  ),
  flag('--id <id>', 'id of the request', requestOptions['id']),
  flag('--task <name>', 'task: only workers that serve it run it', requestOptions['task']),
  flag(
    '--limit <n>',
    'greatest number in flight at once, or none',
    orNone(requestOptions['limit']),
    'number or none',
    'none',
  ),
  flag('--priority <n>', '0 is served first, 99 last', requestOptions['priority'], 'number'),
  flag(
    '--window <n>',
    'most unsettled sub-requests in Redis; 0: no bound',
    requestOptions['window'],
    'number',
  ),
  flag(
    '--max-crashes <n>',
    'how often its worker may end, at least, before a sub-request fails; the last time it runs alone',
    requestOptions['maxCrashes'],
    'number',
  ),
  flag(
    '--attempts <n>',
    'how often a sub-request is tried at most',
    requestOptions['attempts'],
    'number',
  ),
  flag(
    '--backoff <json>',
    'delay before the next attempt: ms, or {"type":"exponential","delayMs":…,"maxDelayMs":…,"jitter":…}',
    requestOptions['backoff'],
    'json',
  ),
  flag(
    '--attempt-timeout-ms <ms>',
    'how long one attempt may take',
    requestOptions['attemptTimeoutMs'],
    'number',
  ),
  flag(
    '--tolerated-failures <n>',
    'how many may fail: a count, or a share as 5%',
    requestOptions['toleratedFailures'],
    'number',
  ),
  flag(
    '--on-exceeded <how>',
    'when more fail: continue, or cancel, which also stops what runs',
    requestOptions['onExceeded'],
  ),
  flag(
    '--deadline-ms <ms>',
    'how long the whole request may take',
    requestOptions['deadlineMs'],
    'number',
  ),
  flag(
    '--delay-ms <ms>',
    'how long it waits before it begins',
    requestOptions['delayMs'],
    'number',
  ),
  flag(
    '--run-at <time>',
    'when it begins: a date as in 2030-01-31T12:00:00Z, or ms since 1970',
    requestOptions['runAt'],
    'time',
  ),
  flag(
    '--expedite',
    'when it is due, go before the undelayed ones of its priority; with --delay-ms or --run-at',
    requestOptions['expedite'],
    'switch',
  ),
  flag('--results <how>', 'keep or discard', requestOptions['results']),
  flag(
    '--timing',
    'results also say when, where and for how long each sub-request ran',
    requestOptions['timing'],
    'switch',
  ),
  flag('--retention-ms <ms>', 'how long results stay', requestOptions['retentionMs'], 'number'),
  flag(
    '--unavailable-ms <ms>',
    'how long to go on trying while Redis is away; 0: not at all',
    requestOptions['unavailableMs'],
    'number',
  ),
  flag(
    '--durability <what>',
    'what the seal waits for: none, replica or fsync',
    requestOptions['durability'],
  ),
  flag(
    '--dedupe-key <key>',
    'the request that was submitted under this key before is taken instead; not with --id',
    dedupeOptions.key,
  ),
  flag(
    '--dedupe-period-ms <ms>',
    'how long the key is known, from its first use',
    dedupeOptions.periodMs,
    'number',
    'the retention',
  ),
  flag(
    '--max-payload-bytes <n>',
    'how long an item may be, as JSON and as a line of the input',
    requestOptions['maxPayloadBytes'],
    'number',
  ),
  flag('--metadata <json>', 'anything small, shown by status', requestOptions['metadata'], 'json'),
];

export const outFlags: readonly Flag[] = [
  flag(
    '--out <file>',
    'results in the order of the input; - for standard output',
    custom(text, 'a file name or -'),
  ),
  flag(
    '--format <how>',
    'of --out: ndjson (default), text (the values alone, a line each, of what succeeded) or csv',
    { ...option.word('ndjson', 'text', 'csv'), default: undefined },
  ),
];

/** Of `run`. */
export const runFlags: readonly Flag[] = [
  flag(
    '-j, --jobs <n>',
    'how many run at once: slots in all, spread over processes',
    option.integer(1, 100_000),
    'number',
  ),
  flag(
    '--failures <file>',
    'what failed, as NDJSON in the order of the input: payload, attempts, error of each',
    custom((v) => text(v) && v !== '-', 'a file name'),
  ),
  flag(
    '--joblog <file>',
    'a line for each sub-request that ended: worker, start, duration, attempts, exit code',
    custom((v) => text(v) && v !== '-', 'a file name'),
  ),
  flag(
    '--resume',
    'with --id: only go on where an earlier run left off; begin nothing',
    option.boolean(false),
    'switch',
  ),
  flag(
    '--retry-failed',
    'as --resume; what failed in a run that has ended runs again',
    option.boolean(false),
    'switch',
  ),
];

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

export const workerFlags: readonly Flag[] = [
  flag(
    '--handler <file>',
    'module whose default export is the handler',
    custom(isFile, 'a file that exists'),
  ),
  flag(
    '--exec <command>',
    'instead of a handler: a command for each sub-request, run by /bin/sh (whatever $SHELL is), payload on stdin, or as an argument for {}; of CSV and TSV, {column} for one field; {index}; result on stdout',
    custom((v) => text(v) && String(v).trim() !== '', 'a shell command'),
  ),
  flag(
    '--exec-output <how>',
    'what --exec writes: text (one last line end is left out), json, or none: it is read and discarded',
    option.word('text', 'json', 'none'),
  ),
  flag(
    '--exec-input <how>',
    'how --exec gets an array: json, or lines (one for each element; default of run with --batch)',
    { ...option.word('json', 'lines'), default: undefined },
  ),
  flag(
    '--exec-fields <list>',
    'names, with commas between them, that stand in --exec as {name} for the field of an item that is an object',
    custom(
      (v) => text(v) && String(v).split(',').every(isFieldName),
      'names of fields like name,url',
    ),
    'text',
    'of run with --split csv or tsv: the columns',
  ),
  flag(
    '--exec-stderr <how>',
    'standard error of --exec: keep (for the error of what fails), or show it too, as it comes, each line behind its index or its request',
    option.word('keep', 'index', 'request'),
  ),
  flag(
    '--persistent',
    'the command lives on: one NDJSON line in, one out, for each sub-request',
    option.boolean(false),
    'switch',
  ),
  flag(
    '--max-result-bytes <n>',
    'how long a result may be, as JSON; more fails its sub-request',
    workerOptions['maxResultBytes'],
    'number',
  ),
  flag('--concurrency <n>', 'slots per process', workerOptions['concurrency'], 'number'),
  flag('--processes <n>', 'worker processes', option.integer(1, 1_000, 1), 'number'),
  flag(
    '--max-restarts <n>',
    'how often a process that ends is started again while nothing is finished',
    option.integer(0, 1_000_000, 100),
    'number',
  ),
  flag(
    '--lease-ms <ms>',
    'how long a silent worker is believed',
    workerOptions['leaseMs'],
    'number',
  ),
  flag(
    '--max-block-ms <ms>',
    'how long a handler may block the process and keep its lease; then a parent (--processes) ends it; 0: as long as the lease',
    workerOptions['maxBlockMs'],
    'number',
  ),
  flag(
    '--slow-ms <ms>',
    'from when on a running handler is logged as slow',
    workerOptions['slowMs'],
    'number',
    'ten times what is usual',
  ),
  flag('--quantum-ms <ms>', 'time slice; 0: one sub-request', workerOptions['quantumMs'], 'number'),
  flag(
    '--drain-ms <ms>',
    'how long a close waits for handlers',
    option.ms(0, 86_400_000, 30_000),
    'number',
  ),
  flag('--log-level <level>', 'what is logged on standard error', {
    ...option.word(...logLevels),
    default: 'info',
  }),
  flag(
    '--log-format <how>',
    'text or json, one line each',
    { ...option.word('text', 'json'), default: undefined },
    'text',
    'text on a terminal, else json',
  ),
];

/** Of a worker that runs as a service. */
export const healthFlags: readonly Flag[] = [
  flag(
    '--health-port <n>',
    'answers GET /live and /ready there; 0: a free port, which is logged',
    option.integer(0, 65_535),
    'number',
  ),
  flag(
    '--health-host <address>',
    'address of the health endpoint',
    custom((v) => text(v) && /^[A-Za-z0-9.:_-]+$/.test(String(v)), 'an address', '127.0.0.1'),
  ),
];

export const resultsFlags: readonly Flag[] = [
  flag('--order <how>', 'index or completion', option.word('index', 'completion')),
  flag('--failed', 'failed sub-requests too', option.boolean(false), 'switch'),
  flag('--cursor <cursor>', 'go on behind this result', custom(text, 'the cursor of a result')),
];

export const failuresFlags: readonly Flag[] = [
  flag('--error <name>', 'only failures whose error has this name', failuresOptions['name']),
  flag(
    '--group',
    'how many there are of each name, with an example',
    option.boolean(false),
    'switch',
  ),
  flag('--payload', 'with what was submitted', option.boolean(false), 'switch'),
  flag(
    '--stack',
    'with the stack of each error, where it has one; --json always has it',
    option.boolean(false),
    'switch',
  ),
  flag('--cursor <cursor>', 'go on behind this failure', failuresOptions['cursor']),
];

export const redriveFlags: readonly Flag[] = [
  flag(
    '--index <list>',
    'only failures of these indexes, with commas between them',
    custom((v) => text(v) && /^\d{1,15}(,\d{1,15})*$/.test(String(v)), 'indexes like 3,17,20'),
  ),
  flag('--error <name>', 'only failures whose error has this name', failuresOptions['name']),
];

export const statusFlags: readonly Flag[] = [
  flag(
    '--running',
    'also what runs now, the longest first: where, for how long, with which progress',
    option.boolean(false),
    'switch',
  ),
  flag('--limit <n>', 'with --running: how many at most', runningOptions['limit'], 'number'),
];

export const listFlags: readonly Flag[] = [
  flag('--state <state>', 'open, ended or all', listOptions['state']),
];

export const queueWideFlag = flag(
  '--queue-wide',
  'the whole queue instead of one request',
  option.boolean(false),
  'switch',
);

export const pauseFlags: readonly Flag[] = [
  queueWideFlag,
  flag(
    '--for-ms <ms>',
    'with --queue-wide: goes on by itself after so long',
    { ...pauseQueueOptions['forMs'], default: undefined } as OptionSpec,
    'number',
    'when it is resumed',
  ),
];

export const updateFlags: readonly Flag[] = [
  flag(
    '--limit <n>',
    'greatest number in flight at once, or none',
    orNone(updateOptions['limit']),
    'number or none',
  ),
  flag('--priority <n>', '0 is served first, 99 last', updateOptions['priority'], 'number'),
  flag(
    '--tolerated-failures <n>',
    'how many sub-requests may fail in a request that succeeds',
    updateOptions['toleratedFailures'],
    'number',
  ),
];

export const watchFlags: readonly Flag[] = [
  flag('--every-ms <ms>', 'time between two looks', option.ms(100, 3_600_000, 1_000), 'number'),
];

export const doctorFlags: readonly Flag[] = [
  flag(
    '--deep',
    'also look for requests that the queue lost: goes through all keys',
    doctorOptions['deep'],
    'switch',
  ),
  flag(
    '--repair',
    'first have requests that were lost looked at again, and look at the agenda',
    doctorOptions['repair'],
    'switch',
  ),
  flag(
    '--users <list>',
    'ACL users whose rights are looked at: worker=NAME,producer=NAME, and so on',
    custom(
      (v) =>
        !namesTwice(String(v)) &&
        doctorOptions['users']?.schema.safeParse(usersOf(String(v))).success === true,
      `role=user with commas between them, each role once; roles: ${ROLES.join(', ')}`,
    ),
  ),
  flag(
    '--slow-ms <ms>',
    'from when on a running handler is a warning',
    doctorOptions['slowMs'],
    'number',
    'ten times what is usual',
  ),
];

/** 'worker=w,producer=p' as an object. */
export function usersOf(list: string): Record<string, string> {
  return Object.fromEntries(
    list.split(',').map((pair) => {
      const at = pair.indexOf('=');
      return at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

/** An object would keep the last user of a role, and the others would not be looked at. */
function namesTwice(list: string): boolean {
  return list.split(',').length > Object.keys(usersOf(list)).length;
}

export const devFlags: readonly Flag[] = [
  flag('--port <n>', 'port of the server', option.integer(1, 65_535), 'number', 'a free one'),
  flag(
    '--dir <folder>',
    'folder for its data, which then outlives it',
    custom(text, 'a folder'),
    'text',
    'a private one that goes',
  ),
  flag('--cluster', 'a Redis Cluster of six nodes', option.boolean(false), 'switch'),
];

/** The same flags, of a command that has other defaults: by name, a value, or undefined and what it does instead. */
export function withDefaults(
  flags: readonly Flag[],
  defaults: Readonly<Record<string, { readonly value?: unknown; readonly otherwise?: string }>>,
): Flag[] {
  return flags.map((one) => {
    const { value, otherwise } = defaults[one.name] ?? {};
    if (!Object.hasOwn(defaults, one.name)) return one;
    const { otherwise: _, ...rest } = one;
    const spec = { ...one.spec, default: value };
    return { ...rest, spec, ...(otherwise === undefined ? {} : { otherwise }) };
  });
}

/** Adds flags to a command; their values are checked later, all in one place. */
export function addFlags(command: Command, ...groups: readonly (readonly Flag[])[]): Command {
  for (const { usage, about, spec, otherwise } of groups.flat()) {
    const byDefault = otherwise ?? (spec.default === false ? undefined : spec.default);
    const shown = byDefault === undefined ? '' : ` (default: ${byDefault})`;
    const added = new Option(usage, about + shown);
    // Not by `choices`, which would check them here: they are for the shell's completion.
    if (spec.words) added.argChoices = [...spec.words];
    command.addOption(added);
  }
  return command;
}

function parse(value: unknown, kind: Flag['kind']): unknown {
  if (kind === 'switch' || typeof value !== 'string') return value;
  if (kind === 'number or none' && value === 'none') return null;
  if (kind === 'number' || kind === 'number or none')
    return value.trim() !== '' && Number.isFinite(Number(value)) ? Number(value) : value;
  // Date would make something of almost any text.
  if (kind === 'time' && /^\d{4}-\d\d-\d\d/.test(value)) return new Date(value);
  if (kind === 'time') return /^\d+$/.test(value) ? Number(value) : value;
  if (kind === 'json') {
    try {
      return JSON.parse(value);
    } catch {
      return undefined;
    }
  }
  return value;
}

/**
 * The checked values of a command's flags; absent ones without a default are left out.
 * @throws InvalidOptionError that names the flag
 */
export function readFlags<T>(
  given: Record<string, unknown>,
  ...groups: readonly (readonly Flag[])[]
): T {
  const values: Record<string, unknown> = {};
  for (const { name, usage, spec, kind } of groups.flat()) {
    const raw = given[name];
    if (raw === undefined) {
      if (spec.default !== undefined) values[name] = spec.default;
      continue;
    }
    const value = parse(raw, kind);
    const named = /--[a-z-]+/.exec(usage)?.[0] ?? usage;
    if (value === undefined) throw new InvalidOptionError(named, raw, spec.allowed);
    for (const one of kind === 'texts' ? (value as string[]) : [value])
      checkOption(named, one, spec);
    values[name] = value;
  }
  return values as T;
}

/** The options of a request from the values of `requestFlags`. @throws InvalidOptionError */
export function requestOf(values: Record<string, unknown>): RequestOptions {
  const options = optionsOf<RequestOptions>(requestOptions, values);
  const { dedupeKey, dedupePeriodMs } = values as { dedupeKey?: string; dedupePeriodMs?: number };
  if (dedupeKey === undefined) {
    if (dedupePeriodMs === undefined) return options;
    throw new InvalidOptionError(
      '--dedupe-period-ms',
      dedupePeriodMs,
      'together with --dedupe-key',
    );
  }
  if (values['id'] !== undefined)
    throw new InvalidOptionError('--dedupe-key', dedupeKey, 'without --id');
  const dedupe = {
    key: dedupeKey,
    ...(dedupePeriodMs === undefined ? {} : { periodMs: dedupePeriodMs }),
  };
  return { ...options, dedupe };
}

/** Those of `values` that are options of `table`. */
export function optionsOf<T>(table: OptionTable, values: Record<string, unknown>): T {
  return Object.fromEntries(
    Object.entries(values).filter(([name]) => Object.hasOwn(table, name)),
  ) as T;
}
