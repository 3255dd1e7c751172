import type { Logger } from 'pino';

/** How many lines of one kind are logged in full in one period; the others are counted. */
const IN_FULL = 5;
const PERIOD_MS = 10_000;
/** Most kinds that are counted separately in one period; all further lines of a level and text are one kind. */
const KINDS = 200;

type Level = 'debug' | 'info' | 'warn';
type Fields = Readonly<Record<string, unknown>>;

interface Kind {
  readonly level: Level;
  readonly what: string;
  readonly fields: Fields;
  count: number;
}

/** Whether a line of this level is logged at all. A logger that does not know this gets every line. */
export const isLogged = (logger: Logger, level: Level): boolean =>
  logger.isLevelEnabled?.(level) ?? true;

/**
 * Log lines that may come in floods, for example when every sub-request fails. The first few lines of each kind in a
 * period are logged in full; at its end one line contains the number of the others.
 */
export class Flood {
  readonly #logger: Logger;
  readonly #kinds = new Map<string, Kind>();
  #timer: NodeJS.Timeout | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** `kind`: fields that all lines of the kind share. `more`: makes the fields of this line. */
  say(level: Level, what: string, kind: Fields, more: () => Fields): void {
    if (!isLogged(this.#logger, level)) return;
    const known = this.#kindOf(level, what, kind);
    known.count += 1;
    // cure: a flood of log lines is counted
    if (known.count <= IN_FULL) this.#logger[level]({ ...kind, ...more() }, what);
  }

  /** Nothing more is counted: logs the number of lines that were left out. */
  close(): void {
    this.flush();
  }

  /** Ends the period. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const { level, what, fields, count } of this.#kinds.values()) {
      const more = count - IN_FULL;
      if (more > 0) this.#logger[level]({ ...fields, more }, `${more} more of: ${what}`);
    }
    this.#kinds.clear();
  }

  #kindOf(level: Level, what: string, fields: Fields): Kind {
    const full = this.#kinds.size >= KINDS;
    const name = JSON.stringify([level, what, fields]);
    const known = this.#kinds.get(name) ?? (full ? this.#kinds.get(level + what) : undefined);
    if (known) return known;
    const kind = { level, what, fields: full ? {} : fields, count: 0 };
    this.#kinds.set(full ? level + what : name, kind);
    this.#timer ??= setTimeout(() => this.flush(), PERIOD_MS).unref();
    return kind;
  }
}
