import prettyMs from 'pretty-ms';

export interface Kept {
  readonly id: string;
  /** What `--redis` was, if it was given. */
  readonly redis: string | undefined;
  /** How long it stays, in ms; undefined: it has not ended, and stays until it is dropped. */
  readonly retentionMs: number | undefined;
  /** Whether there are failures. */
  readonly failed: boolean;
  /** Whether there are results that are stored nowhere else. */
  readonly results: boolean;
  /** Whether the same command continues it. */
  readonly continues?: boolean;
  /** Whether the same command can run its failures again (`--retry-failed`). */
  readonly retries?: boolean;
}

/** Says that a request stays in Redis, and with which commands to read it. */
export function keptLines(kept: Kept): string[] {
  const { id, redis, retentionMs, failed, results, continues, retries } = kept;
  const at = redis === undefined ? '' : ` --redis ${shownUrl(redis)}`;
  const forHowLong =
    retentionMs === undefined ? '' : ` for ${prettyMs(retentionMs, { verbose: true })}`;
  const command = (words: string) => `  piecework ${words}${at}`;
  if (continues) return [`to continue, give the same command again: piecework run --id ${id} …`];
  if (retries && !failed && !results)
    return [`request ${id} stays in Redis${forHowLong}: the same command would run nothing`];
  return [
    `request ${id} stays in Redis${forHowLong}:`,
    ...(failed ? [command(`failures ${id}`)] : []),
    ...(results ? [command(`results ${id} --order index --failed --out FILE`)] : []),
    command(`status ${id}`),
    ...(retentionMs === undefined ? [command(`drop ${id}`)] : []),
    ...(failed && retries ? ['the same command with --retry-failed runs the failures again'] : []),
  ];
}

/** Others may see a terminal, so a URL with a password is not printed. */
export const shownUrl = (url: string) =>
  /:\/\/\S*@|[?&](sentinel)?password=/i.test(url) ? 'URL' : `'${url}'`;
