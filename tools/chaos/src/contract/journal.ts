import { openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Entry, Event } from './history.js';

/** The journal of one process. Its lines survive a kill of the process, as the kernel has them. */
export class Journal {
  readonly #process: string;
  readonly #file: number;

  constructor(folder: string, process: string) {
    this.#process = process;
    this.#file = openSync(join(folder, `${process}.ndjson`), 'a', 0o600);
  }

  write(event: Event): void {
    const entry: Entry = {
      ns: String(process.hrtime.bigint()),
      process: this.#process,
      event,
    };
    writeSync(this.#file, `${JSON.stringify(entry)}\n`);
  }
}
