// Writes the scripts into packages/protocol/dist for clients in other languages: lua/<name>.lua, each as it is sent to
// the server, and scripts.json, how each is called. The build runs it behind `tsc`.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { scripts } from '../packages/protocol/dist/scripts/scripts.generated.js';
import { parseHeader, readSource } from './lua-source.mjs';

const dist = new URL('../packages/protocol/dist/', import.meta.url);
rmSync(new URL('lua', dist), { recursive: true, force: true });
mkdirSync(new URL('lua', dist));

/** A row of a header; `repeated`: it stands for any number of values. */
const row = ({ rest, nested, ...fields }) => ({ ...fields, ...(rest ? { repeated: true } : {}) });

const calls = {};
for (const [name, { sha, lua }] of Object.entries(scripts)) {
  const { purpose, keys, args, replies, each, repeat, flags } = parseHeader(name, readSource(name));
  writeFileSync(new URL(`lua/${name}.lua`, dist), lua);
  calls[name] = {
    ...{ sha1: sha, file: `lua/${name}.lua`, purpose },
    keys: keys.map(row),
    args: args.map(row),
    replies: replies.map(({ word, fields }) => ({ word, fields: fields.map(row) })),
    // It answers a list: one reply for each of its requests.
    ...(each ? { each } : {}),
    ...{ repeat, flags },
  };
}
writeFileSync(new URL('scripts.json', dist), `${JSON.stringify(calls, null, 2)}\n`);
