import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Entry } from '../contract/history.js';

/** A journal is corrupt: a line that is not its last one is not an entry. */
export class JournalError extends Error {
  override readonly name = 'JournalError';
}

export interface Journals {
  readonly journals: number;
  readonly entries: number;
  /** Processes whose last line was cut off. */
  readonly torn: readonly string[];
}

/**
 * Reads all journals of a folder, one after the other, each in order, and passes every entry to `take`. A process may
 * have been killed in the middle of its last line, which is left out. The caller checks that it was killed.
 * @throws JournalError for a line that is no entry and not the last one
 */
export async function readJournals(
  folder: string,
  take: (entry: Entry) => void,
): Promise<Journals> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.ndjson')).sort();
  if (files.length === 0) throw new JournalError(`no journal (*.ndjson) in ${folder}`);
  const torn: string[] = [];
  let entries = 0;
  for (const file of files) {
    let line = 0;
    let rest = '';
    for await (const chunk of createReadStream(join(folder, file), 'utf8')) {
      const lines = (rest + String(chunk)).split('\n');
      rest = lines.pop() ?? '';
      for (const text of lines) {
        line += 1;
        const entry = parse(text);
        if (!entry) throw new JournalError(`${file}, line ${line}: ${text.slice(0, 200)}`);
        take(entry);
      }
    }
    entries += line;
    if (rest === '') continue;
    const last = parse(rest);
    if (last) {
      take(last);
      entries += 1;
    } else torn.push(file.slice(0, -'.ndjson'.length));
  }
  return { journals: files.length, entries, torn };
}

function parse(text: string): Entry | undefined {
  try {
    const entry = JSON.parse(text) as Partial<Entry> | null;
    const whole = entry?.ns && entry.process && typeof entry.event === 'object' && entry.event;
    return whole ? (entry as Entry) : undefined;
  } catch {
    return undefined;
  }
}
