import { createHash } from 'node:crypto';
import { type ScriptText, textOf } from '../scripts/run-script.js';

/**
 * A condition that limits what a queue gives out: a function in Lua that becomes part of the script that takes, when
 * the queue is made. It is program text: never build it from input.
 */
export interface Condition {
  /**
   * Body of a function `(keys, now, wanted)`: `keys`, a list of the keys that are named below, in this order; `now`,
   * server time in ms; `wanted`, how many would be taken, at least 1. It returns how many may be taken now. When that
   * is less than `wanted`, a second value may say in how many ms to ask again (default 1000). It may write to its own
   * keys only; what it wrote before it failed stays.
   */
  readonly lua: string;
  /** Names of its keys; `conditionKey(name)` says what each is called in Redis. */
  readonly keys: readonly string[];
}

/** The place in the script that takes where the text of a condition is inserted. */
const PLACE = 'local granting = nil\n';

/** The script that takes, with this condition inserted. */
export function takeWith({ lua }: Condition): () => ScriptText {
  let plain: ScriptText | undefined;
  let composed: ScriptText | undefined;
  return () => {
    const text = textOf('timed-take');
    if (composed && plain === text) return composed;
    plain = text;
    const granting = `local function granting(keys, now, wanted)\n${lua}\nend\n`;
    const whole = text.lua.replace(PLACE, () => granting);
    composed = { lua: whole, sha: createHash('sha1').update(whole).digest('hex') };
    return composed;
  };
}
