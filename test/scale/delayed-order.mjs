// Judges the order in which tasks were taken, from Redis' own append-only file: it holds every write in
// the order in which it was carried out, also those of scripts and of pops that had waited. So what was
// in the lists at a pop is known exactly, with no clock. The rule: a pop takes from the first of the
// queue's lists that is not empty, priority by priority, its lane before its list; the tokens of a lane
// leave in the order in which they were due, and those of a list as they came. Of several queues that one
// worker serves it says how often a pop took from a later one while a task was in its list.
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

const PUSHES = new Set(['LPUSH', 'RPUSH', 'LINSERT']);

/**
 * @param folder of the append-only files
 * @param queues whose pops are judged, in the order in which they are served
 * @returns of each queue what was popped, in that order: { id, priority, due } (due 0: not delayed); in
 *   words each breach of the rule; and the greatest number of pops from later queues that one of its
 *   tokens saw while it waited
 */
export async function judgeOrder(folder, queues) {
  const judges = new Map(queues.map((queue) => [queue, new QueueOrder()]));
  for await (const [verb, key, ...rest] of commandsIn(folder)) {
    const [, queue, priority, lane] = /^\{(.+)\}:(\d+)(:due)?$/.exec(key ?? '') ?? [];
    const judge = judges.get(queue);
    if (!judge) continue;
    judge.write(verb.toUpperCase(), Number(priority), lane !== undefined, rest);
    if (verb.toUpperCase() !== 'RPOP') continue;
    for (const earlier of queues.slice(0, queues.indexOf(queue))) judges.get(earlier).passed += 1;
  }
  const told = ({ pops, breaches, overtaken }) => ({ pops, breaches, overtaken });
  return new Map([...judges].map(([queue, judge]) => [queue, told(judge)]));
}

/**
 * The same of the shards of one queue, which are served by turns: `overtaken` is how often at most other
 * shards were popped of something less urgent than what a shard had waiting, until that one was popped.
 */
export async function judgeTurns(folder, shards) {
  const judges = new Map(shards.map((shard) => [shard, new QueueOrder()]));
  const passed = new Map(shards.map((shard) => [shard, 0]));
  let overtaken = 0;
  for await (const [verb, key, ...rest] of commandsIn(folder)) {
    const [, shard, priority, lane] = /^\{(.+)\}:(\d+)(:due)?$/.exec(key ?? '') ?? [];
    const judge = judges.get(shard);
    if (!judge) continue;
    judge.write(verb.toUpperCase(), Number(priority), lane !== undefined, rest);
    if (verb.toUpperCase() !== 'RPOP') continue;
    passed.set(shard, 0);
    for (const [other, { head }] of judges) {
      if (other === shard || head === undefined || head >= Number(priority)) continue;
      passed.set(other, passed.get(other) + 1);
      overtaken = Math.max(overtaken, passed.get(other));
    }
  }
  const all = [...judges.values()];
  return {
    overtaken,
    pops: all.flatMap(({ pops }) => pops),
    breaches: all.flatMap(({ breaches }) => breaches),
  };
}

/** All commands, in their order; one that removes several keys as one for each. */
async function* commandsIn(folder) {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.aof')).sort(byNumber);
  for (const file of files) {
    for await (const command of commandsOf(join(folder, file))) {
      const [verb, ...keys] = command;
      if (!/^(DEL|UNLINK)$/i.test(verb)) yield command;
      else for (const key of keys) yield [verb, key];
    }
  }
}

const byNumber = (a, b) => Number(a.match(/\d+/g)?.at(-1)) - Number(b.match(/\d+/g)?.at(-1));

class QueueOrder {
  pops = [];
  breaches = [];
  /** Pops from later queues so far, and the most that one token saw. */
  passed = 0;
  overtaken = 0;
  /** Of each token that is in a list: how many had been when it came. */
  #came = new Map();
  /** Tokens, left to right; 2 · priority is its lane, the next one its list. */
  #lists = Array.from({ length: 200 }, () => []);

  /** The priority of what would be popped now; undefined: nothing is there. */
  get head() {
    const place = this.#lists.findIndex((tokens) => tokens.length > 0);
    return place < 0 ? undefined : Math.floor(place / 2);
  }

  write(verb, priority, isLane, rest) {
    const place = 2 * priority + (isLane ? 0 : 1);
    const list = this.#lists[place];
    if (PUSHES.has(verb)) for (const token of rest) this.#came.set(token, this.passed);
    if (verb === 'RPOP') this.#pop(place, Number(rest[0] ?? 1));
    else if (verb === 'DEL' || verb === 'UNLINK') list.length = 0;
    else if (verb === 'LPUSH') list.unshift(...rest.reverse());
    else if (verb === 'RPUSH') list.push(...rest);
    else if (verb === 'LINSERT') this.#insert(list, rest);
    else throw new Error(`a list was written by ${verb}`);
    if (isLane && PUSHES.has(verb)) this.#expectDueOrder(list);
  }

  #insert(list, [where, pivot, token]) {
    const at = list.indexOf(pivot);
    if (at >= 0) list.splice(where.toUpperCase() === 'BEFORE' ? at : at + 1, 0, token);
  }

  #pop(place, count) {
    for (let i = 0; i < count; i += 1) {
      const token = this.#lists[place].pop();
      const before = this.#lists.slice(0, place).findIndex((tokens) => tokens.length > 0);
      if (before >= 0) this.breaches.push(`${token} before ${this.#lists[before].at(-1)}`);
      this.overtaken = Math.max(this.overtaken, this.passed - this.#came.get(token));
      const [id, , , due = '0'] = token.split('~');
      this.pops.push({ id, priority: Math.floor(place / 2), due: Number(due) });
    }
  }

  /** The right end goes first. */
  #expectDueOrder(lane) {
    const place = (token) => token.split('~');
    for (let i = 1; i < lane.length; i += 1) {
      const [, generation, , due] = place(lane[i - 1]);
      const [, earlier, , first] = place(lane[i]);
      const isLater = Number(due) - Number(first) || Number(generation) - Number(earlier);
      if (isLater < 0) this.breaches.push(`${lane[i - 1]} behind ${lane[i]}`);
    }
  }
}

/** The commands of an append-only file, each as an array of texts. */
async function* commandsOf(path) {
  let rest = Buffer.alloc(0);
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
    const bytes = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
    let at = 0;
    for (;;) {
      const command = commandAt(bytes, at);
      if (!command) break;
      at = command.end;
      if (command.words.length > 0) yield command.words;
    }
    rest = bytes.subarray(at);
  }
  if (rest.length > 0) throw new Error(`${path} ends in the middle of a command`);
}

function commandAt(bytes, start) {
  const line = (from) => {
    const end = bytes.indexOf('\r\n', from);
    return end < 0 ? undefined : { text: bytes.toString('latin1', from + 1, end), end: end + 2 };
  };
  const head = line(start);
  if (!head) return undefined;
  if (bytes[start] !== 0x2a) return { words: [], end: head.end };
  const words = [];
  let at = head.end;
  for (let i = 0; i < Number(head.text); i += 1) {
    const size = line(at);
    if (!size) return undefined;
    const end = size.end + Number(size.text);
    if (bytes.length < end + 2) return undefined;
    words.push(bytes.toString('utf8', size.end, end));
    at = end + 2;
  }
  return { words, end: at };
}
