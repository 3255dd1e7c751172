import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { Output } from '../../packages/cli/dist/output/output.js';

it('an output file is emptied before its first line is written, whoever begins it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'piecework-output-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, 'lines.txt');
  const output = await Output.open('--out', path);
  // The file is being emptied when the line is written, as at the end of a run on a busy machine.
  const begun = output.begin();
  output.line('one');
  await output.flush();
  await begun;
  await output.close();
  expect(await readFile(path, 'utf8')).toBe('one\n');
});
