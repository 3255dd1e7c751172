import { createHash } from 'node:crypto';

/*
 * The scripts as they are shipped, with a clock that a test can move. Every script reads the time in one function,
 * `now` of lua/lib/now.lua; its last line here adds what the caller appends as the last argument. No other build of
 * the scripts has to be shipped for that.
 */

/** A script as it is sent to the server, and the SHA-1 digest by which the server knows it. */
export interface ScriptText {
  readonly sha: string;
  readonly lua: string;
}

/** The line of `now` that answers the time of the server in ms. */
const ANSWER = 'return t[1] * 1000 + math.floor(t[2] / 1000)';
/** Before anything of the script reads its arguments. */
const TAKE_OFFSET = 'local clockOffset = tonumber(table.remove(ARGV))';

/** @throws Error when a script reads the time in another way, which this would not move */
export function movedScripts<Name extends string>(
  scripts: Readonly<Record<Name, ScriptText>>,
): Record<Name, ScriptText> {
  const moved = Object.entries<ScriptText>(scripts).map(([name, { lua }]) => {
    const [flags, ...body] = lua.split('\n');
    const reads = lua.split("'TIME'").length - 1;
    if (reads !== lua.split(ANSWER).length - 1)
      throw new Error(`the script ${name} reads the time in a way that a test clock does not move`);
    const text = body.join('\n').replace(ANSWER, `${ANSWER} + clockOffset`);
    const whole = [flags, TAKE_OFFSET, text].join('\n');
    return [name, { lua: whole, sha: createHash('sha1').update(whole).digest('hex') }];
  });
  return Object.fromEntries(moved) as Record<Name, ScriptText>;
}
