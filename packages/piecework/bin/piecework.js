#!/usr/bin/env node
// The command line is a package of its own. This hands over to it where it is installed beside the
// library, and else says how to get it: `npx piecework` ends here.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

function findCommandLine() {
  for (const from of [import.meta.url, pathToFileURL(join(process.cwd(), 'package.json'))]) {
    try {
      return createRequire(from).resolve('@piecework/cli/bin');
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
}

const program = findCommandLine();
if (program) await import(pathToFileURL(program).href);
else {
  console.error(
    'piecework: the command line is a package of its own: npx @piecework/cli --help, or\n' +
      'npm install @piecework/cli, and then npx piecework --help',
  );
  process.exitCode = 1;
}
