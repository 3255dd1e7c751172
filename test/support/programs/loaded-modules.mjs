// Given to node by --import: writes the URL of each module that the program loads, one a line, to standard output:
// those that ES modules import at once, those that CommonJS modules require at the end, after the word 'require'.
import { writeSync } from 'node:fs';
import { createRequire, register } from 'node:module';
import { pathToFileURL } from 'node:url';

const hook = `
import { writeSync } from 'node:fs';
export async function load(url, context, next) {
  writeSync(1, url + '\\n');
  return next(url, context);
}`;
register(`data:text/javascript,${encodeURIComponent(hook)}`);

const { cache } = createRequire(import.meta.url);
process.on('exit', () => {
  for (const file of Object.keys(cache)) writeSync(1, `require ${pathToFileURL(file)}\n`);
});
