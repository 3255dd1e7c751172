import { readdirSync, readFileSync } from 'node:fs';

const lua = new URL('../../lua/', import.meta.url);
const model = new URL('.', import.meta.url);

/** Names of the scripts in lua/. */
export function scripts() {
  return readdirSync(lua)
    .filter((name) => name.endsWith('.lua'))
    .map((name) => name.slice(0, -'.lua'.length));
}

/** Names of the scripts that an action of the model says it stands for, and whether it is used. */
export function actions() {
  const files = readdirSync(model).filter((name) => name.endsWith('.pml'));
  const texts = files.map((name) => readFileSync(new URL(name, model), 'utf8'));
  const all = texts.join('\n');
  return [...all.matchAll(/^\/\* script: ([a-z-]+) \*\/\ninline (\w+)\(/gm)].map(
    ([, script, inline]) => ({ script, calls: all.split(`${inline}(`).length - 2 }),
  );
}
