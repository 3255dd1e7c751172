// Writes packages/protocol/src/scripts.generated.ts from lua/. With --check it writes nothing and
// fails when the committed module is not what lua/ says.
import { readFileSync, writeFileSync } from 'node:fs';
import { buildScripts } from './lua-source.mjs';

const target = new URL('../packages/protocol/src/scripts.generated.ts', import.meta.url);
const scripts = buildScripts();
const entries = Object.entries(scripts).map(
  ([name, { lua, sha }]) =>
    `  ${JSON.stringify(name)}: {\n    sha: '${sha}',\n    lua: ${JSON.stringify(lua)},\n  },`,
);
const text = `// Written by scripts/build-lua.mjs from lua/. DO NOT EDIT: run \`npm run lua\`.
export const scripts = {
${entries.join('\n')}
} as const;

export type ScriptName = keyof typeof scripts;
`;

if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') !== text) {
    console.error('scripts.generated.ts is stale: run `npm run lua` and commit the result');
    process.exit(1);
  }
  console.log('scripts.generated.ts is fresh');
} else {
  writeFileSync(target, text);
  console.log(`wrote ${Object.keys(scripts).length} scripts`);
}
