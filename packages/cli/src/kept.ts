import prettyMs from 'pretty-ms';

export interface Kept {
  readonly id: string;
  /** What `--redis` was, if it was given. */
  readonly redis: string | undefined;
  /** How long; undefined: until it is dropped, as it has not ended. */
  readonly retentionMs: number | undefined;
  /** Whether there are failures to look at. */
  readonly failed: boolean;
  /** Whether there are results that are nowhere else. */
  readonly results: boolean;
  /** Whether the same command goes on with it. */
  readonly goesOn?: boolean;
  /** Whether it runs what failed again, if it is asked to. */
  readonly retries?: boolean;
}

/** Says that a request stays in Redis, and how to look at it. */
export function keptLines(kept: Kept): string[] {
  const { id, redis, retentionMs, failed, results, goesOn, retries } = kept;
  const at = redis === undefined ? '' : ` --redis ${shownUrl(redis)}`;
  const forHowLong =
    retentionMs === undefined ? '' : ` for ${prettyMs(retentionMs, { verbose: true })}`;
  const command = (words: string) => `  piecework ${words}${at}`;
  if (goesOn) return [`to go on, give the same command again: piecework run --id ${id} …`];
  if (retries && !failed && !results)
    return [`request ${id} stays in Redis${forHowLong}: given again, the command runs nothing`];
  return [
    `request ${id} stays in Redis${forHowLong}:`,
    ...(failed ? [command(`failures ${id}`)] : []),
    ...(results ? [command(`results ${id} --order index --failed --out FILE`)] : []),
    command(`status ${id}`),
    ...(retentionMs === undefined ? [command(`drop ${id}`)] : []),
    ...(failed && retries ? ['given again with --retry-failed, the command runs what failed'] : []),
  ];
}

/** Everybody may look at a terminal: a URL with a password is left to the user. */
export const shownUrl = (url: string) => (/:\/\/[^/]*@/.test(url) ? 'URL' : `'${url}'`);
