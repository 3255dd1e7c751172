import { Redis } from 'ioredis';
import { buildScripts } from '../../../../scripts/lua-source.mjs';

/** Calls by name: scripts by theirs, plain commands in small letters. */
export type Counts = Record<string, number>;

const SCRIPTS = new Map(Object.entries(buildScripts()).map(([name, { sha }]) => [sha, name]));
/** Of a settle, behind the script's hash and the number of keys: 7 keys, then the 8th argument. */
const SUCCESSES = 2 + 7 + 7;

/** Counts what every client of this process sends, also those of a cluster and of a pipeline. */
export class CallCounter {
  counts: Counts = {};

  start(): void {
    const send = Redis.prototype.sendCommand;
    const note = (name: string, args: readonly unknown[]) => this.#note(name, args);
    Redis.prototype.sendCommand = function counted(this: Redis, command, stream) {
      note(command.name, command.args);
      return send.call(this, command, stream);
    };
  }

  #note(name: string, args: readonly unknown[]): void {
    const what = name === 'evalsha' ? (SCRIPTS.get(String(args[0])) ?? name) : name;
    this.#add(what, 1);
    if (what === 'settle') this.#add('outcomes', Number(args[SUCCESSES]));
  }

  #add(what: string, count: number): void {
    this.counts[what] = (this.counts[what] ?? 0) + count;
  }
}

export function sum(all: readonly Counts[]): Counts {
  const total: Counts = {};
  for (const counts of all) {
    for (const [what, count] of Object.entries(counts)) total[what] = (total[what] ?? 0) + count;
  }
  return total;
}
