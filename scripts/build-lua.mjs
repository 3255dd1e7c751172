// Writes two modules in packages/protocol/src/scripts from lua/: scripts.generated.ts (the texts) and
// calls.generated.ts (how each script is called). With --check it writes nothing, and fails when a committed module
// does not match lua/.
import { readFileSync, writeFileSync } from 'node:fs';
import { buildCalls } from './calls-source.mjs';
import { buildScripts, checkLibrary, libraryNames } from './lua-source.mjs';

for (const name of libraryNames) checkLibrary(name);
const scripts = buildScripts();
const entries = Object.entries(scripts).map(
  ([name, { lua, sha }]) =>
    `  ${JSON.stringify(name)}: {\n    sha: '${sha}',\n    lua: ${JSON.stringify(lua)},\n  },`,
);
const modules = {
  'scripts.generated.ts': `// Written by scripts/build-lua.mjs from lua/. DO NOT EDIT: run \`npm run lua\`.
export const scripts = {
${entries.join('\n')}
} as const;

export type ScriptName = keyof typeof scripts;
`,
  'calls.generated.ts': buildCalls(),
};

for (const [file, text] of Object.entries(modules)) {
  const target = new URL(`../packages/protocol/src/scripts/${file}`, import.meta.url);
  if (!process.argv.includes('--check')) {
    writeFileSync(target, text);
  } else if (readFileSync(target, 'utf8') !== text) {
    console.error(`${file} is stale: run \`npm run lua\` and commit the result`);
    process.exit(1);
  } else {
    console.log(`${file} is fresh`);
  }
}
if (!process.argv.includes('--check')) console.log(`wrote ${Object.keys(scripts).length} scripts`);
