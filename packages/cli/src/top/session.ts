import { isGone, type Query, type QueueSource } from '@piecework/views';
import { count } from '@piecework/views/format';
import type { Paint } from '../terminal/colour.js';
import { codeOf } from '../terminal/stop-signals.js';
import { frame, pageSize } from './frame.js';
import { type Effect, type Key, press } from './keys.js';
import type { Look } from './lines.js';
import {
  type Choice,
  type Data,
  type DrawnOverview,
  FIRST_CHOICE,
  held,
  NO_DATA,
} from './state.js';
import type { Terminal } from './terminal.js';

export interface TopOptions {
  readonly queue: string;
  /** Time between two rounds of reads, in ms. */
  readonly everyMs: number;
  readonly readOnly: boolean;
  readonly paint: Paint;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** The clock and what is said for a while are drawn anew so often, in ms. */
const DRAW_EVERY_MS = 1_000;

const CHECKING = 'The checks run; f shows what they find.';
const CHECKED = 'The checks ran less than ten seconds ago; f shows what they found.';

/**
 * The view: reads a round, draws it, waits, and does what keys ask for. Nothing is read twice within 0.9 s, however many
 * keys are pressed: the source sees to that.
 */
export class TopSession {
  readonly #source: QueueSource;
  readonly #terminal: Terminal;
  readonly #options: TopOptions;
  #choice: Choice = FIRST_CHOICE;
  #data: Data = NO_DATA;
  #reading: Promise<void> | undefined;
  #isOver = false;
  /** A key has changed what is to be read. */
  #isNews = false;
  #timer: NodeJS.Timeout | undefined;
  #end: (code: number) => void = () => {};
  readonly #onStop = () => this.#suspend();

  constructor(source: QueueSource, terminal: Terminal, options: TopOptions) {
    this.#source = source;
    this.#terminal = terminal;
    this.#options = options;
  }

  /** @returns the exit code, when the person who looks has ended it, or a signal has */
  async run(): Promise<number> {
    const terminal = this.#terminal;
    const listeners = SIGNALS.map((signal) => [signal, () => this.#end(codeOf(signal))] as const);
    const ended = new Promise<number>((resolve) => {
      this.#end = resolve;
    });
    const onContinue = () => this.#continue();
    const clock = setInterval(() => this.#draw(), DRAW_EVERY_MS);
    for (const [signal, listener] of listeners) process.on(signal, listener);
    process.on('SIGTSTP', this.#onStop);
    process.on('SIGCONT', onContinue);
    terminal.onKey((key) => this.#pressed(key));
    terminal.onResize(() => {
      terminal.redraw();
      this.#draw();
      this.#hurry();
    });
    terminal.onEnd(() => this.#end(codeOf('SIGHUP')));
    terminal.enter();
    try {
      this.#draw();
      this.#round();
      return await ended;
    } finally {
      this.#isOver = true;
      clearTimeout(this.#timer);
      clearInterval(clock);
      terminal.leave();
      for (const [signal, listener] of listeners) process.off(signal, listener);
      process.off('SIGTSTP', this.#onStop);
      process.off('SIGCONT', onContinue);
    }
  }

  get #look(): Look {
    const { queue, readOnly, paint } = this.#options;
    return { ...this.#terminal.size, paint, readOnly, queue, now: Date.now() };
  }

  #draw(): void {
    const { lines, scroll } = frame(this.#choice, this.#data, this.#look);
    this.#choice = { ...this.#choice, scroll };
    this.#terminal.draw(lines);
  }

  #pressed(key: Key): void {
    const before = this.#choice;
    const { choice, effect } = press(before, this.#data, key, this.#options.readOnly);
    this.#choice = choice;
    if (choice.opened !== before.opened) this.#data = { ...this.#data, gone: '' };
    if (effect) this.#do(effect);
    if (this.#isOver) return;
    this.#draw();
    if (choice !== before) this.#hurry();
  }

  #do(effect: Effect): void {
    if ('id' in effect) void this.#change(effect);
    else if (effect.do === 'say') this.#say(effect.text, false);
    else
      ({
        quit: () => this.#end(0),
        interrupt: () => this.#end(codeOf('SIGINT')),
        suspend: () => this.#suspend(),
        redraw: () => this.#terminal.redraw(),
        check: () => this.#say(this.#source.check() ? CHECKING : CHECKED, false),
      })[effect.do]();
  }

  #say(text: string, isBad: boolean): void {
    this.#data = { ...this.#data, said: { text, isBad, at: Date.now() } };
  }

  async #change(effect: Extract<Effect, { readonly id: string }>): Promise<void> {
    const request = this.#source.pw.request(effect.id);
    this.#say(`${effect.do} ${effect.id} …`, false);
    try {
      this.#say(await changed(request, effect), false);
    } catch (error) {
      this.#say(`Not done: ${(error as Error).message}`, true);
    }
    this.#source.changed();
    this.#draw();
    this.#hurry();
  }

  /** Reads anew as soon as it can. */
  #hurry(): void {
    this.#isNews = true;
    if (!this.#reading) this.#round();
  }

  #round(): void {
    clearTimeout(this.#timer);
    this.#isNews = false;
    this.#reading = this.#read().finally(() => {
      this.#reading = undefined;
      if (this.#isOver) return;
      this.#draw();
      if (this.#isNews) this.#round();
      else this.#timer = setTimeout(() => this.#round(), this.#options.everyMs);
    });
  }

  async #read(): Promise<void> {
    const choice = this.#choice;
    try {
      const read = await this.#readScreen(choice);
      const isAsked = this.#choice === choice;
      const page = read.requests?.page ?? this.#choice.page;
      if (this.#choice.page === choice.page) this.#choice = { ...this.#choice, page };
      this.#data = { ...this.#data, gone: '', ...read, answeredAt: Date.now(), problem: '' };
      if (isAsked) this.#choice = held(this.#choice, this.#data);
    } catch (error) {
      const { message } = error as Error;
      if (isGone(error))
        this.#data = { ...this.#data, gone: message, answeredAt: Date.now(), problem: '' };
      else this.#data = { ...this.#data, problem: message };
    }
  }

  async #readScreen({ screen, opened, ...choice }: Choice): Promise<Partial<Data>> {
    const source = this.#source;
    switch (screen) {
      case 'request':
        return {
          request: { ...(await source.request(opened)), chart: source.closely(opened).chart() },
        };
      case 'workers':
        return { workers: await source.workers() };
      case 'errors': {
        const [overview, errors] = await Promise.all([overviewOf(source), source.errors()]);
        return { overview, errors };
      }
      case 'queue': {
        const overview = await overviewOf(source);
        const requests = await source.requests(this.#query(choice));
        return { overview, requests };
      }
      default:
        return { overview: await overviewOf(source) };
    }
  }

  #query({ text, which, sort, descending, page }: Omit<Choice, 'screen' | 'opened'>): Query {
    const size = pageSize(this.#data, this.#look);
    const any = { priorityFrom: 0, priorityTo: 99, olderThanMs: 0, youngerThanMs: 0 };
    return { ...any, text, state: which, sort, descending, page, size };
  }

  /** Gives the terminal back and stops, as other programs do. A stopped process asks nothing. */
  #suspend(): void {
    this.#terminal.leave();
    process.off('SIGTSTP', this.#onStop);
    process.kill(process.pid, 'SIGTSTP');
    // Where nobody could continue it, the system does not stop it.
    setImmediate(() => this.#continue());
  }

  #continue(): void {
    if (this.#isOver) return;
    process.off('SIGTSTP', this.#onStop);
    process.on('SIGTSTP', this.#onStop);
    this.#terminal.enter();
    this.#terminal.redraw();
    this.#draw();
  }
}

type Request = ReturnType<QueueSource['pw']['request']>;

/** @returns in words what was done */
async function changed(
  request: Request,
  effect: Extract<Effect, { readonly id: string }>,
): Promise<string> {
  const { id } = effect;
  switch (effect.do) {
    case 'pause':
      await request.pause();
      return `${id} is paused; p resumes it.`;
    case 'resume': {
      const { changed } = await request.resume();
      return changed ? `${id} is resumed.` : `${id} was not paused.`;
    }
    case 'limit':
      await request.update({ limit: effect.limit });
      return `The limit of ${id} is ${effect.limit === null ? 'none' : count(effect.limit)}.`;
    case 'redrive': {
      const { redriven } = await request.redrive();
      return `${count(redriven)} sub-requests of ${id} run again.`;
    }
  }
}

async function overviewOf(source: QueueSource): Promise<DrawnOverview> {
  const overview = await source.overview();
  return { ...overview, chart: source.chart() };
}
