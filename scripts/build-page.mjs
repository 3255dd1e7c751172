// Bundles the page of the dashboard: packages/dashboard/page → packages/dashboard/dist/page/page.js and page.css.
// Users of the package need no build step. Takes less than a second.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const at = fileURLToPath(new URL('../packages/dashboard/', import.meta.url));
rmSync(`${at}dist/page`, { recursive: true, force: true });
await build({
  absWorkingDir: at,
  entryPoints: { page: 'page/main.tsx' },
  outdir: 'dist/page',
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'inline',
  logLevel: 'warning',
});

// What is bundled is shipped with its licence.
const licences = ['preact', '@preact/signals', 'uplot'].map((name) => {
  const text = readFileSync(`${at}node_modules/${name}/LICENSE`, 'utf8');
  return `${name}\n\n${text.trim()}\n`;
});
writeFileSync(`${at}dist/page/licences.txt`, licences.join('\n---\n\n'));
