import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ExecProgram } from '../../packages/cli/dist/exec/program.js';

const never = new AbortController().signal;
const env = { PATH: process.env['PATH'] };
/** As long as output is read after the end of a shell, in ms. */
const OUTPUT_MS = 500;

/** Keeps the event loop from running, as a busy machine does. */
function standStillUntil(holds: () => boolean): void {
  while (!holds());
}

async function started(
  command: string,
): Promise<{ program: ExecProgram; hasEnded: () => boolean }> {
  const program = await ExecProgram.start(command, env, never);
  const pid = childrenOfThisProcess().at(-1);
  return { program, hasEnded: () => / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')) };
}

function childrenOfThisProcess(): number[] {
  const all = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8');
  return all.trim().split(' ').map(Number);
}

// It looks into /proc.
const onLinux = process.platform === 'linux';

describe('the output of a program', () => {
  test.runIf(onLinux)(
    'is read whole when this process does something else for long after the program ended',
    async () => {
      const late = await started('read -r word; echo "said $word"');
      let output = '';
      late.program.stdout.on('data', (part: Buffer) => {
        output += part;
      });
      // Node reads this one's output, during which the other program ends; is told that both have ended; and then does
      // something else until no more output is waited for.
      const early = await started('echo word');
      early.program.stdout.once('data', (word: Buffer) => {
        late.program.stdin.end(word);
        standStillUntil(late.hasEnded);
        setImmediate(() => {
          const until = performance.now() + OUTPUT_MS;
          standStillUntil(() => performance.now() > until);
        });
      });
      await new Promise<void>((resolve) => process.nextTick(resolve));
      standStillUntil(early.hasEnded);
      expect(await Promise.all([early.program.ended, late.program.ended])).toEqual(['', '']);
      expect(output).toBe('said word\n');
    },
  );
});
