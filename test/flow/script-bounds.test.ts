import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../scale/script-time.mjs', import.meta.url));

interface Row {
  readonly name: string;
  readonly size: number;
  readonly commands: number;
}

/** Worlds in which a call does as much however large they are: once it has as much to do as one call does. */
const WORLDS = [
  ...['tick, parked requests of other', 'tick, parked requests that', 'tick, parked by'],
  ...['100 priorities', 'long dead', 'take, small', 'cancel, given back', 'tend, workers with 100'],
];

async function rowsAt(scale: string): Promise<Row[]> {
  const args = [PROGRAM, ...WORLDS, '--scale', scale, '--most-ms', '1000000', '--json'];
  const program = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  return JSON.parse(await text(program.stdout)) as Row[];
}

/** script-time.mjs by itself goes to the full sizes, and measures the time. */
test('a call touches no more in a world that is ten times as large', {
  tags: ['processes'],
  timeout: 120_000,
}, async () => {
  const small = await rowsAt('0.02');
  const large = await rowsAt('0.2');
  expect(small).toHaveLength(WORLDS.length);
  for (const [i, { name, size, commands }] of large.entries()) {
    expect(size, name).toBeGreaterThanOrEqual(9 * (small[i] as Row).size);
    // Where the small world was less than one call does, that is all that it does.
    expect(commands, `${name}, ${size}`).toBeLessThanOrEqual(2_500);
  }
});
