import { existsSync } from 'node:fs';
import { dedupeOptions, type RequestOptions, requestOptions } from '@piecework/producer/options';
import { InvalidOptionError, option } from '@piecework/protocol/contract';
import { delimiterOf, separatesFields } from '../input/delimiter.js';
import { isPattern } from '../input/pattern.js';
import { isHidden } from '../terminal/file-stat.js';
import { TIME_FORMS } from '../terminal/time-of.js';
import { custom, type Flag, flag, isText, orNone } from './flag.js';
import { optionsOf } from './read-flags.js';

/** A pattern, or a name that is not UTF-8, is looked up when the input is read. */
const isSearched = (input: string) => isPattern(input) || input.includes('\ufffd');

function isInput(value: unknown): boolean {
  if (!isText(value)) return false;
  const input = String(value);
  return input === '-' || existsSync(input) || isHidden(input) || isSearched(input);
}

const isHeader = (value: unknown) =>
  isText(value) &&
  new Set(String(value).split(',').filter(Boolean)).size === String(value).split(',').length;

const { runAt } = requestOptions;

/** How a request is made from an input: flags of `run` and `submit`. */
export const requestFlags: readonly Flag[] = [
  flag(
    '--input <path...>',
    'files, folders, patterns in quotes such as "logs/**/*.gz", or - for standard input; gzip and zstd are decompressed',
    custom(isInput, 'a file or folder that exists, a pattern, or -'),
    'texts',
  ),
  flag(
    '--split <how>',
    'how the input is split into items: lines, ndjson (a JSON value a line), json (the elements of an array, or JSON values one after the other), csv, tsv (as databases write it: quotes are data), files (the names of files), delimiter:X (such as \\0), or chunk:N (N lines each)',
    custom(
      (v) =>
        isText(v) &&
        /^(lines|ndjson|json|csv|tsv|files|chunk:[1-9]\d{0,6}|delimiter:.{1,100})$/s.test(
          String(v),
        ),
      'lines, ndjson, json, csv, tsv, files, delimiter:X or chunk:N',
    ),
    'text',
    'files of a folder, else lines',
  ),
  flag(
    '--json-path <names>',
    'with --split json: where the array is, as names with dots between them, such as data.items',
    custom(
      (v) =>
        isText(v) &&
        String(v)
          .split('.')
          .every((name) => name !== ''),
      'names with dots between them',
    ),
    'text',
    'the whole input',
  ),
  flag(
    '--csv-delimiter <x>',
    'with --split csv: the character between fields, such as ; or \\t',
    custom((v) => separatesFields(delimiterOf(String(v))), 'one character, or \\t'),
    'text',
    'a comma, or that of a first line such as sep=;',
  ),
  flag(
    '--csv-header <names>',
    'with --split csv or tsv, for rows without a header: names of the columns, separated by commas, or none, which makes each row an array',
    custom(isHeader, 'different names like id,name, or none'),
    'text',
    'the first row',
  ),
  flag(
    '--bad-rows <file>',
    'file for records that cannot be items, as NDJSON with file, line and reason; all others are run, and the exit code is 1. Without it the first one ends the input',
    custom((v) => isText(v) && v !== '-', 'a file name'),
  ),
  flag(
    '--batch <n>',
    'number of items for each sub-request; its payload is an array',
    {
      ...option.integer(1, 1_000_000),
      default: undefined,
    },
    'number',
  ),
  flag(
    '--binary',
    'the items are bytes, not text: a payload is {"$binary":"<base64>"}, and programs of --exec get the bytes',
    option.boolean(false),
    'switch',
  ),
  flag(
    '--allow-empty',
    'accept an input without items, instead of ending with exit code 1',
    option.boolean(false),
    'switch',
  ),
  flag(
    '--dry-run',
    'show the first ten sub-requests, and start nothing',
    option.boolean(false),
    'switch',
  ),
  flag(
    '--id <id>',
    'id of the request; while it is kept, the same id starts no work twice',
    requestOptions['id'],
  ),
  flag(
    '--task <name>',
    'name of a task: only workers that serve this task run the request',
    requestOptions['task'],
  ),
  flag(
    '--limit <n>',
    'maximum number of sub-requests that run at once, or none',
    orNone(requestOptions['limit']),
    'number or none',
    'none',
  ),
  flag(
    '--priority <n>',
    'from 0 (served first) to 99 (served last)',
    requestOptions['priority'],
    'number',
  ),
  flag(
    '--window <n>',
    'most unsettled sub-requests in Redis at once: submitting waits for more room; 0: no bound',
    requestOptions['window'],
    'number',
  ),
  flag(
    '--max-crashes <n>',
    'a sub-request fails after at least this number of worker crashes; before the last one it runs isolated',
    requestOptions['maxCrashes'],
    'number',
  ),
  flag('--attempts <n>', 'most attempts of a sub-request', requestOptions['attempts'], 'number'),
  flag(
    '--backoff <json>',
    'delay before the next attempt: a number of ms, or {"type":"exponential","delayMs":…,"maxDelayMs":…,"jitter":…}',
    requestOptions['backoff'],
    'json',
  ),
  flag(
    '--attempt-timeout-ms <ms>',
    'longest time of one attempt',
    requestOptions['attemptTimeoutMs'],
    'number',
  ),
  flag(
    '--tolerated-failures <n>',
    'number of sub-requests that may fail in a request that succeeds, or a share such as 5%',
    requestOptions['toleratedFailures'],
    'number',
  ),
  flag(
    '--on-exceeded <how>',
    'when more fail: continue, or cancel the rest and abort handlers',
    requestOptions['onExceeded'],
  ),
  flag(
    '--deadline-ms <ms>',
    'longest time of the whole request; the rest is then cancelled',
    requestOptions['deadlineMs'],
    'number',
  ),
  flag('--delay-ms <ms>', 'delay before the request begins', requestOptions['delayMs'], 'number'),
  flag(
    '--run-at <time>',
    'time at which the request begins: such as 2030-01-31T12:00:00Z, or 2030-01-31T12:00 in the time zone of this machine, or ms since 1970',
    runAt && { ...runAt, allowed: TIME_FORMS },
    'time',
  ),
  flag(
    '--expedite',
    'with --delay-ms or --run-at: when the request is due, serve it before undelayed requests of its priority',
    requestOptions['expedite'],
    'switch',
  ),
  flag('--results <how>', 'keep the results in Redis, or discard them', requestOptions['results']),
  flag(
    '--timing',
    'add to each result when, where and for how long its sub-request ran',
    requestOptions['timing'],
    'switch',
  ),
  flag(
    '--retention-ms <ms>',
    'how long results stay in Redis after the completion',
    requestOptions['retentionMs'],
    'number',
  ),
  flag(
    '--unavailable-ms <ms>',
    'how long to keep trying while Redis cannot be reached; 0: not at all',
    requestOptions['unavailableMs'],
    'number',
  ),
  flag(
    '--durability <what>',
    'confirmation to wait for after sealing: none, replica or fsync',
    requestOptions['durability'],
  ),
  flag(
    '--dedupe-key <key>',
    'if a request was submitted under this key before, take that one instead; not with --id',
    dedupeOptions.key,
  ),
  flag(
    '--dedupe-period-ms <ms>',
    'how long the key is remembered after its first use',
    dedupeOptions.periodMs,
    'number',
    'the retention',
  ),
  flag(
    '--max-payload-bytes <n>',
    'greatest size of an item, as JSON and as a line of the input',
    requestOptions['maxPayloadBytes'],
    'number',
  ),
  flag(
    '--metadata <json>',
    'any small JSON value; status --json shows it',
    requestOptions['metadata'],
    'json',
  ),
];

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
