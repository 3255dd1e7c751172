import { resolve } from 'node:path';
import { option } from '@piecework/protocol/contract';
import { workerOptions } from '@piecework/worker/options';
import { isFieldName } from '../exec/field-name.js';
import { isHidden, statIfAny } from '../terminal/file-stat.js';
import { custom, type Flag, flag, isText } from './flag.js';
import { logFlags } from './server-flags.js';

function isFile(value: unknown): boolean {
  if (!isText(value)) return false;
  const path = resolve(String(value));
  // The command says which folder may not be searched.
  return statIfAny(path)?.isFile() === true || isHidden(path);
}

/** A number of processes. */
const isCount = (value: unknown) =>
  Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 1_000;

const isAddress = (value: unknown) => isText(value) && /^[A-Za-z0-9.:_-]+$/.test(String(value));

export const workerFlags: readonly Flag[] = [
  flag(
    '--handler <file>',
    'JavaScript module whose default export is the handler, an object of handlers by task name, or an array of results of defineTask(name).handler(fn)',
    custom(isFile, 'a file that exists'),
  ),
  flag(
    '--exec <command>',
    'instead of a handler: a command that /bin/sh (whatever $SHELL is) runs for each sub-request. The payload is on stdin, or an argument in place of {}, which is refused in single quotes and backquotes, and does not belong into text that eval, trap or another shell (sh -c, ssh) runs as code; {column} is one field of a CSV or TSV row, {index} the index. Its stdout is the result',
    custom((v) => isText(v) && String(v).trim() !== '', 'a shell command'),
  ),
  flag(
    '--exec-output <how>',
    'how the output of --exec is read: text (without the last line end), json, or none (discarded)',
    option.word('text', 'json', 'none'),
  ),
  flag(
    '--exec-input <how>',
    'how --exec gets an array: json, or lines (one for each element; default of run --batch)',
    { ...option.word('json', 'lines'), default: undefined },
  ),
  flag(
    '--exec-fields <list>',
    'names of fields, separated by commas: {name} in --exec is that field of an item that is an object',
    custom(
      (v) => isText(v) && String(v).split(',').every(isFieldName),
      'names of fields like name,url',
    ),
    'text',
    'the columns of run --split csv or tsv',
  ),
  flag(
    '--exec-stderr <how>',
    'stderr of --exec: keep it for the error of a sub-request that fails, or also show it as it comes, each line behind its index or its request',
    option.word('keep', 'index', 'request'),
  ),
  flag(
    '--persistent',
    'keep the programs of --exec running: each gets one line of JSON for a sub-request, and answers with one',
    option.boolean(false),
    'switch',
  ),
  flag(
    '--max-result-bytes <n>',
    'greatest size of a result, as JSON; a larger one fails its sub-request',
    workerOptions['maxResultBytes'],
    'number',
  ),
  flag(
    '--concurrency <n>',
    'slots of each process: sub-requests that it runs at once',
    workerOptions['concurrency'],
    'number',
  ),
  flag(
    '--processes <n>',
    'number of worker processes; auto: one for each core that they may use',
    custom((v) => v === 'auto' || isCount(v), 'a whole number from 1 to 1000, or auto', 1),
    'number',
  ),
  flag(
    '--max-restarts <n>',
    'maximum number of restarts of a process that ended, while no sub-request is finished',
    option.integer(0, 1_000_000, 100),
    'number',
  ),
  flag(
    '--lease-ms <ms>',
    'after this time without a sign of life, other workers take over the work of a worker',
    workerOptions['leaseMs'],
    'number',
  ),
  flag(
    '--max-block-ms <ms>',
    'how long a handler may block its process before the process loses its leases; with --processes, the parent then kills it; 0: as long as --lease-ms',
    workerOptions['maxBlockMs'],
    'number',
  ),
  flag(
    '--idle <how>',
    'frugal: an idle worker sends a tenth of the commands, for servers that bill each, and notices later that another worker has died',
    workerOptions['idle'],
  ),
  flag(
    '--slow-ms <ms>',
    'a handler that has run this long is logged as slow',
    workerOptions['slowMs'],
    'number',
    'ten times the usual time',
  ),
  flag(
    '--quantum-ms <ms>',
    'time slice: after it a worker asks whether other requests wait; 0: after each sub-request',
    workerOptions['quantumMs'],
    'number',
  ),
  flag(
    '--settle-delay-ms <ms>',
    'how long a finished item may wait on the worker to be recorded together with others; 0: not at all',
    workerOptions['settleDelayMs'],
    'number',
  ),
  flag(
    '--drain-ms <ms>',
    'how long a worker that is stopped waits for its handlers',
    option.ms(0, 86_400_000, 30_000),
    'number',
  ),
  ...logFlags,
];

/** Flags of a worker that runs as a service. */
export const healthFlags: readonly Flag[] = [
  flag(
    '--health-port <n>',
    'port that answers GET /live and /ready, and /metrics if --metrics-port is the same; 0: a free port, which is logged',
    option.integer(0, 65_535),
    'number',
  ),
  flag(
    '--health-host <address>',
    'address of the health endpoint',
    custom(isAddress, 'an address', '127.0.0.1'),
  ),
];

/** Flags of workers that Prometheus reads. */
export const metricsFlags: readonly Flag[] = [
  flag(
    '--metrics-port <n>',
    'port that answers GET /metrics to Prometheus, for all processes; 0: a free port, which is logged',
    option.integer(0, 65_535),
    'number',
  ),
  flag(
    '--metrics-host <address>',
    'address of --metrics-port',
    custom(isAddress, 'an address'),
    'text',
    'that of --health-host, else 127.0.0.1',
  ),
];
