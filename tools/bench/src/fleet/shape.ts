/** A fleet, its handlers and its requests: one row of the figures `fleet` and `network`. */
export interface Shape {
  readonly workers: number;
  readonly slots: number;
  /** Nominal time of a handler; 0: it returns at once. */
  readonly handlerMs: number;
  /** Equal requests that share the work. */
  readonly requests: number;
  readonly targets: ShapeTargets;
}

/** What is judged of a row. */
export interface ShapeTargets {
  /** Least rate over the ideal rate. */
  readonly ofIdeal?: number;
  /** Least rate over that of BullMQ. */
  readonly rate?: number;
  /** Greatest Redis CPU over that of BullMQ. */
  readonly redis?: number;
  /** Greatest client CPU over that of BullMQ. */
  readonly client?: number;
}

/** How `--rows` names it: `40x5 50ms 20`. */
export function nameOf({ workers, slots, handlerMs, requests }: Shape): string {
  return `${workers}x${slots} ${handlerMs}ms ${requests}`;
}

/** How a reader sees it. */
export function labelOf({ workers, slots, handlerMs, requests }: Shape): string {
  const equal = requests > 1 ? `, ${requests} requests` : '';
  return `${workers} × ${slots}, ${handlerMs} ms${equal}`;
}

/** Sub-requests per second while no slot is empty; infinite for handlers that return at once. */
export function idealRate({ workers, slots, handlerMs }: Shape): number {
  return (workers * slots * 1_000) / handlerMs;
}

/** Whether `--rows` asks for it: every word of one of the texts is a word of the name. No text asks for all. */
export function isWanted(name: string, texts: readonly string[]): boolean {
  const words = new Set(name.split(' '));
  const matches = (text: string) => text.split(' ').every((word) => words.has(word));
  return texts.length === 0 || texts.some(matches);
}
