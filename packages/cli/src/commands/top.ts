import { PieceworkError } from '@piecework/protocol/contract';
import type { Command } from 'commander';
import { commonFlags } from '../flags/common-flags.js';
import { topFlags } from '../flags/query-flags.js';
import { addFlags, readFlags } from '../flags/read-flags.js';
import { existingRedis } from '../flags/redis-url.js';
import { hasColours, painter } from '../terminal/colour.js';
import { openPiecework } from './open-piecework.js';

interface TopValues {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
  everyMs: number;
  readOnly: boolean;
}

/** How long the connection may take to close, in ms: Redis may be away. */
const CLOSING_MS = 1_000;

const flags = commonFlags.map((one) =>
  one.name === 'json' ? { ...one, about: 'not for a live view: use list, status or watch' } : one,
);

/** `top`: an overview of a queue on the terminal, live, with keys that control it. */
export function topCommand(program: Command): void {
  const command = program
    .command('top')
    .description('show a queue live on this terminal, and control its requests by keys');
  addFlags(command, flags, topFlags).action(async (given: Record<string, unknown>) => {
    const values = readFlags<TopValues>(given, flags, topFlags);
    const { queue, shards, everyMs, readOnly } = values;
    checkTerminal(values.json);
    // Says at once that Redis cannot be reached, or is too old.
    await (await openPiecework(values)).close();
    // Loaded on demand: help and wrong usage need nothing of it.
    const [{ Privacy, QueueSource }, { TopSession }, { Terminal }] = await Promise.all([
      import('@piecework/views'),
      import('../top/session.js'),
      import('../top/terminal.js'),
    ]);
    // Who may reach Redis from here may also know its address.
    const addresses = { without: (text: string) => text };
    const source = new QueueSource(
      existingRedis(values.redis),
      { name: queue, shards },
      new Privacy({}),
      addresses,
      () => {},
    );
    const paint = painter(hasColours(process.stdout));
    const terminal = new Terminal(process.stdin, process.stdout);
    const code = await new TopSession(source, terminal, { queue, everyMs, readOnly, paint }).run();
    const late = new Promise((resolve) => setTimeout(resolve, CLOSING_MS));
    await Promise.race([source.close(), late]).catch(() => {});
    // A read that still waits for Redis would keep the process alive.
    process.exit(code);
  });
}

/** @throws PieceworkError: there is nobody who could look */
function checkTerminal(json: boolean): void {
  const instead =
    'programs use `piecework list --json`, `piecework status ID --json` or `piecework watch --json`';
  const refuse = (why: string) => {
    throw new PieceworkError(`${why}; ${instead}`, { code: 'INVALID_OPTION' });
  };
  if (json) refuse('top draws on a terminal, and has no --json');
  const { stdin, stdout } = process;
  if (stdin.isTTY && stdout.isTTY) return;
  const which = stdin.isTTY ? 'standard output' : 'standard input';
  refuse(`top draws on a terminal and reads its keys, and ${which} is none`);
}
