import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { waitsForUs } from '../../packages/cli/dist/terminal/launcher.js';
import { onStopSignals } from '../../packages/cli/dist/terminal/stop-signals.js';

/** What a command heard of signals. The process of the test is to stay, so its end never comes. */
function listening(): string[] {
  const heard: string[] = [];
  const onHard = () => {
    heard.push('end at once');
    return new Promise<void>(() => {});
  };
  const onStop = (signal: NodeJS.Signals) => heard.push(`stop by ${signal}`);
  onTestFinished(onStopSignals(onStop, onHard, ['SIGINT', 'SIGHUP']));
  return heard;
}

const signal = (name: NodeJS.Signals) => process.emit(name, name);

describe('a signal that stops a command', () => {
  test('counts once when npm or npx passes it on to the command that has it from the terminal', () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const heard = listening();
    signal('SIGINT');
    vi.advanceTimersByTime(100);
    signal('SIGINT');
    expect(heard).toEqual(['stop by SIGINT']);
    vi.advanceTimersByTime(1_000);
    signal('SIGINT');
    expect(heard).toEqual(['stop by SIGINT', 'end at once']);
  });

  test('counts at once when it is another one', () => {
    const heard = listening();
    signal('SIGHUP');
    signal('SIGINT');
    expect(heard).toEqual(['stop by SIGHUP', 'end at once']);
  });
});

describe('a command that npm started ends with npm', () => {
  test.each([
    ["'piecework'", 'npx piecework'],
    ['piecework worker --handler h.mjs', 'npm run'],
    ['node_modules/.bin/piecework worker', 'the path of the program'],
    ['tsc && piecework worker > log 2>&1', 'a command before it, and redirections'],
  ])('when the command of npm is %s (%s)', (text) => expect(waitsForUs(text)).toBe(true));

  test.each([
    ['', 'not started by npm'],
    ['piecework worker --handler h.mjs &', 'put in the background'],
    ['piecework worker & piecework worker & wait', 'several in the background'],
    ['nohup piecework worker', 'nohup'],
    ['setsid -f piecework worker', 'setsid'],
    ["'pm2' start ecosystem.config.cjs", 'another program starts it'],
    ['node piecework-app.mjs', 'a program of a similar name'],
  ])('but not when it is "%s" (%s)', (text) => expect(waitsForUs(text)).toBe(false));
});
