import type { RequestHandle } from 'piecework';
import { joblogWriter } from '../output/joblog.js';
import { type OutputError, writeResultsLive } from '../output/output.js';
import { resultFormats, untimed } from '../output/result-format.js';
import { say } from '../terminal/print.js';
import type { RunFiles } from './files.js';
import { Salvage } from './salvage.js';
import type { RunValues } from './values.js';

/** Writes `--out` and `--joblog` while the request runs. */
export class Writing {
  /** Resolves when `--out` is written; with the error that cut it off, if there was one. */
  readonly results: Promise<OutputError | undefined> | undefined;
  /** The same of `--joblog`. */
  readonly joblog: Promise<OutputError | undefined> | undefined;
  readonly #salvage: Salvage | undefined;
  readonly #files: RunFiles;
  readonly #json: boolean;
  #rescued = false;

  /**
   * @param signal ends the writing
   * @param onClosed is called when the reader of an output wants nothing more
   */
  constructor(
    handle: RequestHandle,
    files: RunFiles,
    { format = 'ndjson', timing, json }: RunValues,
    signal: AbortSignal,
    onClosed: (error: OutputError) => void,
  ) {
    const { out, joblog } = files;
    const writer = timing ? resultFormats[format] : untimed(resultFormats[format]);
    this.#files = files;
    this.#json = json;
    const onCut = (advice: string) => (error: OutputError) => {
      if (error.isClosed) onClosed(error);
      else if (!json) say(`${error.message}; ${advice}`);
    };
    if (out) {
      this.#salvage = new Salvage(handle, out, format, signal);
      const stay = onCut('the results stay in Redis');
      const onResultsCut = (error: OutputError) => {
        // Nobody wants them there.
        this.#rescued ||= error.isClosed;
        stay(error);
      };
      this.results = writeResultsLive(this.#salvage, out, onResultsCut, writer);
    }
    if (joblog) {
      const ended = handle.results({ order: 'completion', failed: true, live: false, signal });
      const without = onCut('the run continues without a joblog');
      this.joblog = writeResultsLive(ended, joblog, without, joblogWriter);
    }
  }

  /** Whether `rescue` has something to do. */
  get canRescue(): boolean {
    return this.#salvage !== undefined && !this.#rescued;
  }

  /** Before the process ends at once: writes the results that have finished, and says where they are. */
  async rescue(): Promise<void> {
    if (!this.#salvage || !this.results || this.#rescued) return;
    this.#rescued = true;
    const said = await this.#salvage.end(this.results);
    await this.#files.joblog?.flush().catch(() => {});
    if (!this.#json) say(said);
  }
}
