#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

if (existsSync(new URL('../dist/main.js', import.meta.url))) {
  await import('../dist/main.js');
  // What failed may leave a timer of a call that is over; nothing is waited for any more.
  if (process.exitCode) setTimeout(() => process.exit(), 100).unref();
} else {
  // Only in a clone: what is installed was built before it was packed.
  const clone = fileURLToPath(new URL('../../..', import.meta.url));
  console.error(`piecework: this clone is not built yet. Once: cd ${clone} && npm run setup`);
  process.exitCode = 1;
}
