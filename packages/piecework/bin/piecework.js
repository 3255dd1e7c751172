#!/usr/bin/env node
// The command line is a package of its own. This hands over to it where it is installed beside the
// library, and else says how to get it: `npx piecework` ends here.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** File URL of the command line: of this clone, or beside this package, or of the folder we are in. */
function findCommandLine() {
  const neighbour = new URL('../../cli/bin/piecework.js', import.meta.url);
  const inClone = existsSync(new URL('../tsconfig.json', import.meta.url));
  if (inClone && existsSync(neighbour)) return neighbour;
  for (const from of [import.meta.url, pathToFileURL(join(process.cwd(), 'package.json'))]) {
    try {
      return pathToFileURL(createRequire(from).resolve('@piecework/cli/bin'));
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
}

const program = findCommandLine();
if (program) await import(program.href);
else {
  console.error(
    'piecework: the command line is a package of its own. Run it by npx @piecework/cli --help, or\n' +
      'install it by npm install @piecework/cli; then npx piecework --help works here.',
  );
  process.exitCode = 1;
}
