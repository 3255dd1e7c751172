import { Numbers } from './numbers.js';

export type Ending = 'none' | 'succeeded' | 'failed' | 'aborted' | 'held';
const ENDINGS: readonly Ending[] = ['none', 'succeeded', 'failed', 'aborted', 'held'];

/** One run of a handler. `endMs` is NaN if its journal has no end of it. */
export interface Run {
  readonly request: number;
  readonly process: number;
  readonly index: number;
  /** From 1; grows with each failure that was counted. */
  readonly attempt: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly ended: Ending;
  /** When its signal aborted; NaN if it did not, as far as is known. */
  readonly toldMs: number;
}

/** All runs, in columns. Requests and processes are referred to by their numbers. */
export class Runs {
  readonly #request = new Numbers();
  readonly #process = new Numbers();
  readonly #index = new Numbers();
  readonly #attempt = new Numbers();
  readonly #start = new Numbers();
  readonly #end = new Numbers();
  readonly #ended = new Numbers();
  readonly #told = new Map<number, number>();
  /** Runs under way: of each process, by request and index, the rows. */
  readonly #open = new Map<number, Map<string, number[]>>();

  get length(): number {
    return this.#start.length;
  }

  begin(process: number, request: number, index: number, attempt: number, ms: number): void {
    const open = this.#open.get(process) ?? new Map<string, number[]>();
    this.#open.set(process, open);
    const key = `${request}:${index}`;
    const rows = open.get(key);
    if (rows) rows.push(this.length);
    else open.set(key, [this.length]);
    this.#request.push(request);
    this.#process.push(process);
    this.#index.push(index);
    this.#attempt.push(attempt);
    this.#start.push(ms);
    this.#end.push(Number.NaN);
    this.#ended.push(0);
  }

  /** The same sub-request may run twice in one process, as a zombie and again: the older one ends first. */
  end(process: number, request: number, index: number, ms: number, how: Ending): boolean {
    const open = this.#open.get(process);
    const key = `${request}:${index}`;
    const rows = open?.get(key);
    const row = rows?.shift();
    if (row === undefined) return false;
    if (rows?.length === 0) open?.delete(key);
    this.#end.set(row, ms);
    this.#ended.set(row, ENDINGS.indexOf(how));
    return true;
  }

  /** Its signal aborted: that of the newest run without an abort; a zombie of it was aborted before. */
  told(process: number, request: number, index: number, ms: number): void {
    const rows = this.#open.get(process)?.get(`${request}:${index}`) ?? [];
    const row = rows.find((it) => !this.#told.has(it));
    if (row !== undefined) this.#told.set(row, ms);
  }

  at(row: number): Run {
    return {
      request: this.#request.at(row),
      process: this.#process.at(row),
      index: this.#index.at(row),
      attempt: this.#attempt.at(row),
      startMs: this.#start.at(row),
      endMs: this.#end.at(row),
      ended: ENDINGS[this.#ended.at(row)] as Ending,
      toldMs: this.#told.get(row) ?? Number.NaN,
    };
  }

  /** The runs of each request, by its number, in the order of their starts. */
  *byRequest(): Generator<[request: number, runs: Run[]]> {
    const rows = Uint32Array.from({ length: this.length }, (_, row) => row);
    rows.sort(
      (a, b) => this.#request.at(a) - this.#request.at(b) || this.#start.at(a) - this.#start.at(b),
    );
    for (let from = 0; from < rows.length; ) {
      const request = this.#request.at(rows[from] as number);
      let to = from;
      while (to < rows.length && this.#request.at(rows[to] as number) === request) to += 1;
      yield [request, Array.from(rows.subarray(from, to), (row) => this.at(row))];
      from = to;
    }
  }
}
