// Bundles the program of the renewal thread with the client of Redis into one text:
// packages/worker/dist/lease/renewal-thread.js. So the thread needs no file, and starts also in a worker that its user
// has bundled. Takes less than a second.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** The scripts that the thread calls; the others would be half of the text. */
const CALLED = ['renew', 'cause'];
const root = fileURLToPath(new URL('..', import.meta.url));
const lease = join(root, 'packages/worker/dist/lease');

const onlyCalled = {
  name: 'only the scripts that the thread calls',
  setup: ({ onLoad }) =>
    onLoad({ filter: /protocol\/dist\/scripts\/scripts\.generated\.js$/ }, async ({ path }) => {
      const { scripts } = await import(path);
      const called = Object.fromEntries(CALLED.map((name) => [name, scripts[name]]));
      return { contents: `export const scripts = ${JSON.stringify(called)};` };
    }),
};
const { outputFiles, metafile } = await build({
  absWorkingDir: root,
  entryPoints: [join(lease, 'renewal-start.js')],
  outdir: lease,
  bundle: true,
  minify: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  charset: 'ascii',
  write: false,
  metafile: true,
  // Optional: the colours of a debug log.
  external: ['supports-color'],
  plugins: [onlyCalled],
  logLevel: 'warning',
});
const [{ text }] = outputFiles;
writeFileSync(
  join(lease, 'renewal-thread.js'),
  `export const RENEWAL_THREAD = ${JSON.stringify(text)};\n`,
);

// What is bundled is shipped with its licence.
const bundled = new Map(
  Object.keys(metafile.inputs)
    .map((path) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path))
    .flatMap((found) => (found ? [[found[1], found[0]]] : [])),
);
const licences = [...bundled].sort().map(([name, at]) => {
  const file = ['LICENSE', 'LICENSE.md', 'license', 'license.md', 'LICENCE']
    .map((one) => join(root, at, one))
    .find((one) => existsSync(one));
  const { license } = JSON.parse(readFileSync(join(root, at, 'package.json'), 'utf8'));
  return `${name}\n\n${file ? readFileSync(file, 'utf8').trim() : license}\n`;
});
writeFileSync(join(lease, 'licences.txt'), licences.join('\n---\n\n'));
