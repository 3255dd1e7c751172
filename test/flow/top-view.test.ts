import { describe, expect, it } from 'vitest';
import { frame, pageSize } from '../../packages/cli/dist/top/frame.js';
import { type Key, press } from '../../packages/cli/dist/top/keys.js';
import { chart, type Look, plain, shares, widthOf } from '../../packages/cli/dist/top/lines.js';
import { type Choice, type Data, held, type Screen } from '../../packages/cli/dist/top/state.js';
import { HIDDEN } from '../support/hidden.js';
import {
  busyData,
  choiceOf,
  dataOf,
  hostile,
  NOW,
  overviewOf,
  rowOf,
} from '../support/top-data.js';

/*
 * `piecework top` as functions: what it draws of what it has read, and what keys do.
 */

const SIZES = [
  [80, 24],
  [160, 50],
  [40, 12],
  [20, 5],
] as const;
const SCREENS: readonly Screen[] = ['queue', 'request', 'workers', 'errors', 'findings', 'help'];

const look = (columns = 80, rows = 24, more: Partial<Look> = {}): Look => ({
  ...{ columns, rows, paint: plain, now: NOW, readOnly: false, queue: 'req' },
  ...more,
});
const drawn = (choice: Partial<Choice>, data: Data, at = look()) =>
  frame(choiceOf(choice), data, at).lines;
const text = (...args: Parameters<typeof drawn>) => drawn(...args).join('\n');

const opened = (data: Data): Partial<Choice> => ({ opened: data.request?.row.id ?? '' });

describe('every screen', () => {
  const busy = busyData();
  const prompts: readonly Choice['prompt'][] = [
    undefined,
    { kind: 'filter', text: 'x'.repeat(200), before: '' },
    { kind: 'limit', id: 'y'.repeat(128), now: 8, text: '12x', wrong: 'a number' },
    { kind: 'redrive', id: 'z'.repeat(128), failed: 3 },
  ];
  const datas: Readonly<Record<string, Data>> = {
    busy,
    empty: dataOf([]),
    'not read yet': { ...dataOf([]), answeredAt: 0, overview: undefined, requests: undefined },
    'cut off': { ...busy, answeredAt: NOW - 30_000, problem: 'Redis cannot be reached '.repeat(9) },
    dropped: { ...busy, gone: 'there is no such request '.repeat(9) },
    hostile: hostile(busy),
  };
  it('fits the terminal, line by line, whatever was read', () => {
    for (const [name, data] of Object.entries(datas))
      for (const [columns, rows] of SIZES)
        for (const screen of SCREENS)
          for (const prompt of prompts) {
            const choice = { screen, prompt, ...opened(data), text: 'a filter' };
            const lines = drawn(choice, data, look(columns, rows));
            const what = `${name} ${screen} ${columns}×${rows}`;
            expect(lines, what).toHaveLength(rows);
            for (const line of lines) expect(widthOf(line), what).toBeLessThanOrEqual(columns);
          }
  });

  it('contains nothing that commands the terminal or that nobody sees, whatever users wrote', () => {
    const data = hostile(busy);
    const prompt = hostile(prompts[2]);
    for (const screen of SCREENS) {
      const shown = text({ screen, prompt, ...opened(data), text: hostile('f') }, data);
      expect(shown.replaceAll('\n', ''), screen).not.toMatch(HIDDEN);
    }
  });
});

describe('the overview', () => {
  it('says that all is well, or the worst first, each with its cure', () => {
    expect(text({}, dataOf([]))).toContain('✓ All is well.');
    const lines = drawn({}, busyData(), look(160, 50));
    expect(lines[1]).toBe('✗ No worker is alive. → Start workers of this queue.');
    expect(lines[2]).toMatch(/^! 30 attempts failed. → See the errors \(key e\)/);
    expect(text({}, busyData())).toMatch(/\+2: press f$/m);
  });

  it('shows the table of requests, as many as fit, with progress, rate, time left and limit', () => {
    const data = dataOf([
      rowOf('first', {
        counts: { succeeded: 50, ready: 50 },
        rate: 5,
        etaMs: 10_000,
        limit: 12_345,
      }),
      rowOf('second', { waitingFor: 'resume', counts: { ready: 3 }, priority: 7 }),
      rowOf('third', {
        status: 'complete',
        outcome: 'failed',
        completedAt: NOW - 180_000,
        counts: { failed: 2 },
      }),
    ]);
    const lines = drawn({ selected: 'second' }, data);
    expect(lines.find((line) => line.includes('first '))).toMatch(
      /^ {2}first +mail +waiting +████░░░░ +50 % +5\.0\/s +10 s +50 +12,345 +0 +100$/,
    );
    expect(lines.find((line) => line.includes('second'))).toMatch(
      /^▶ second +mail +paused +░{8} +0 % .* 7 +none +0 +3$/,
    );
    expect(lines.find((line) => line.includes('third'))).toMatch(
      / failed +█{8} +100 % +3 min ago /,
    );
    const busy = busyData();
    const shown = drawn({}, busy).filter((line) => /request-w.* 50 /.test(line));
    expect(shown).toHaveLength(pageSize(busy, look()));
    expect(shown.length).toBeGreaterThan(8);
  });

  it('always shows which requests are chosen, and what an empty table means', () => {
    const states = {
      any: 99_999,
      open: 99_999,
      running: 9_999,
      waiting: 9_999,
      paused: 9_999,
      failing: 99_999,
      succeeded: 99_999,
      failed: 99_999,
      cancelled: 9,
    };
    const { requests } = dataOf([]);
    const data = dataOf([], { requests: { ...requests!, states } });
    for (const which of ['any', 'open', 'failing', 'cancelled'] as const)
      expect(text({ which }, data)).toContain(`[${which} `);
    expect(text({}, dataOf([]))).toContain('No requests in this queue yet');
    const ended = overviewOf({ ended: { succeeded: 3, failed: 0, cancelled: 0 } });
    expect(text({}, dataOf([], { overview: ended }))).toContain('No open requests. 3 ended');
    expect(text({ text: 'xyz' }, dataOf([]))).toContain('No request matches xyz.');
  });

  it('says that Redis does not answer, since when and why, and that it asks again', () => {
    const away = { answeredAt: NOW - 12_000, problem: 'connect ECONNREFUSED' };
    const lines = drawn({}, { ...busyData(), ...away });
    expect(lines.at(-2)).toBe(
      '✗ Reading failed, asking again; last answer 12 s ago: connect ECONNREFUSED',
    );
    expect(drawn({}, { ...busyData(), answeredAt: NOW - 12_000 }).at(-2)).toMatch(
      /^! Redis has not answered for 12 s/,
    );
    // What was read before stays.
    expect(lines.join()).toContain('request-w');
  });

  it('draws charts as high as they are told, and shows the least of something', () => {
    expect(chart([0, 1, 50, 100], 6, 1, 100)).toEqual(['   ▁▄█']);
    expect(chart([100, 50], 2, 2, 100)).toEqual(['█ ', '██']);
  });
});

describe('an open request', () => {
  it('has books that add up, as numbers and as a bar', () => {
    const row = rowOf('r', {
      counts: { succeeded: 900, failed: 1, running: 9, ready: 80, delayed: 10 },
    });
    const request = { ...busyData().request!, row };
    const lines = drawn({ screen: 'request', opened: 'r' }, dataOf([], { request }));
    const bar = lines.find((line) => /^█+▓/.test(line)) ?? '';
    expect(bar).toHaveLength(80);
    expect(bar).toMatch(/^█{60,}▓▄░+·$/);
    const sum = lines.join(' ').match(/█ succeeded ([\d,]+) .*= ([\d,]+)/)?.[0] ?? '';
    const [total = 0, ...parts] = (sum.match(/[\d,]+/g) ?? [])
      .map((n) => Number(n.replace(',', '')))
      .reverse();
    expect(parts.reduce((all, n) => all + n, 0)).toBe(total);
    expect(total).toBe(1_000);
  });

  it('groups failures by class, and says which worker holds what', () => {
    const data = busyData();
    const shown = text({ screen: 'request', ...opened(data) }, data, look(160, 50));
    expect(shown).toMatch(/^ +2 × TypeError: no address \(index 7\)$/m);
    expect(shown).toMatch(/^runs {2}8 at 3 workers/m);
    expect(shown).toMatch(/^host-0-abcdefgh +10: 0 \(1 min 30 s, attempt 2, progress 40\), 3 /m);
  });

  it('gives each part of the books a place in the bar, and the bar its width', () => {
    for (const parts of [
      [1, 1_000_000],
      [1, 1, 1, 997],
      [0, 0],
      [3, 3, 3],
      [1, 1, 1, 1, 1],
    ]) {
      const widths = shares(parts, 40);
      const all = parts.reduce((sum, n) => sum + n, 0);
      expect(widths.reduce((sum, n) => sum + n, 0)).toBe(all === 0 ? 0 : 40);
      for (const [i, n] of parts.entries()) expect((widths[i] ?? 0) > 0).toBe(n > 0);
    }
  });
});

describe('keys', () => {
  const rows = [
    rowOf('a', { counts: { ready: 1 } }),
    rowOf('b', { waitingFor: 'resume', counts: { ready: 1 }, limit: 8 }),
    rowOf('c', { status: 'complete', outcome: 'failed', counts: { failed: 3 } }),
  ];
  const data = dataOf(rows);
  const key = (typed: string): Key =>
    typed.length === 1
      ? { name: typed.toLowerCase(), sequence: typed }
      : { name: typed, sequence: '\u001b[' };
  /** Presses keys one after the other. */
  function pressed(keys: readonly string[], from: Partial<Choice> = {}, readOnly = false) {
    let last: ReturnType<typeof press> = { choice: choiceOf(from) };
    for (const one of keys) last = press(last.choice, data, key(one), readOnly);
    return last;
  }

  it('select, open and leave a request', () => {
    expect(pressed(['j']).choice.selected).toBe('b');
    expect(pressed(['down', 'down', 'down', 'k']).choice.selected).toBe('b');
    expect(pressed(['j', 'return']).choice).toMatchObject({ screen: 'request', opened: 'b' });
    expect(pressed(['j', 'return', 'escape']).choice).toMatchObject({
      screen: 'queue',
      selected: 'b',
    });
    expect(pressed(['return', '?', 'escape']).choice).toMatchObject({
      screen: 'request',
      opened: 'a',
    });
    expect(pressed(['w', 'e', 'e']).choice.screen).toBe('queue');
  });

  it('keep the selected request when the table is sorted anew', () => {
    const { choice } = pressed(['j']);
    const other = dataOf([...rows].reverse());
    expect(press(choice, other, key('p'), false).effect).toEqual({ do: 'resume', id: 'b' });
  });

  it('act on no other request when the selected one has left the list', () => {
    for (const one of ['p', 'l', 'r']) {
      const first = press(choiceOf({ selected: 'gone', place: 1 }), data, key(one), false);
      expect(first.effect).toEqual({
        do: 'say',
        text: `gone has left this list. Now b is selected: press ${one} again for that.`,
      });
      expect(first.choice).toMatchObject({ selected: 'b', prompt: undefined });
    }
    const { choice } = press(choiceOf({ selected: 'gone', place: 1 }), data, key('p'), false);
    expect(press(choice, data, key('p'), false).effect).toEqual({ do: 'resume', id: 'b' });
  });

  it('hold the request that is drawn as selected, though nobody has chosen it', () => {
    const choice = held(choiceOf({}), data);
    expect(choice).toMatchObject({ selected: 'a', place: 0 });
    // A new one comes in above it.
    const more = dataOf([rowOf('new', { counts: { ready: 1 } }), ...rows]);
    expect(press(choice, more, key('p'), false).effect).toEqual({ do: 'pause', id: 'a' });
    // What somebody chose, another screen, and an empty list stay as they are.
    for (const other of [{ selected: 'c' }, { screen: 'workers' as const }]) {
      const same = choiceOf(other);
      expect(held(same, data)).toBe(same);
    }
    expect(held(choiceOf({}), dataOf([])).selected).toBe('');
  });

  it('pause, resume, and say of what has ended that it has', () => {
    expect(pressed(['p']).effect).toEqual({ do: 'pause', id: 'a' });
    expect(pressed(['j', 'p']).effect).toEqual({ do: 'resume', id: 'b' });
    expect(pressed(['j', 'j', 'p']).effect).toEqual({ do: 'say', text: 'c has ended.' });
  });

  it('change the limit to a number or none, and refuse the rest before anything is sent', () => {
    const typed = (...keys: string[]) => pressed(['l', ...keys, 'return']);
    expect(typed('1', '2').effect).toEqual({ do: 'limit', id: 'a', limit: 12 });
    expect(typed('n', 'o', 'n', 'e').effect).toEqual({ do: 'limit', id: 'a', limit: null });
    expect(typed('1', '2', 'backspace').effect).toMatchObject({ limit: 1 });
    for (const wrong of ['0', '-', 'q', '1x', '1000001', '1e3', '1.5']) {
      const { effect, choice } = typed(...wrong);
      expect(effect, wrong).toBeUndefined();
      expect(choice.prompt, wrong).toMatchObject({
        wrong: 'a number from 1 to 1,000,000, or none',
      });
    }
    expect(typed().choice.prompt).toBeUndefined();
    expect(pressed(['l', '5', 'escape']).effect).toBeUndefined();
  });

  it('ask before they redrive, and take only y for yes', () => {
    const asked = pressed(['j', 'j', 'r']);
    expect(asked.effect).toBeUndefined();
    expect(asked.choice.prompt).toEqual({ kind: 'redrive', id: 'c', failed: 3 });
    expect(drawn(asked.choice, data).at(-2)).toBe(
      'Run 3 failed sub-requests of c again? y: yes · n: no',
    );
    expect(pressed(['y'], asked.choice).effect).toEqual({ do: 'redrive', id: 'c' });
    expect(pressed(['return'], asked.choice).choice.prompt).toBeDefined();
    expect(pressed(['n'], asked.choice)).toMatchObject({ choice: { prompt: undefined } });
    expect(pressed(['r']).effect).toMatchObject({
      do: 'say',
      text: expect.stringContaining('a has not ended'),
    });
  });

  it('change nothing when the view is read-only', () => {
    for (const one of ['p', 'l', 'r'])
      expect(pressed([one], {}, true)).toMatchObject({
        choice: { prompt: undefined },
        effect: { do: 'say', text: expect.stringContaining('read-only') },
      });
    expect(drawn({}, data, look(80, 24, { readOnly: true })).at(-1)).not.toContain('pause');
  });

  it('filter while they are typed; Escape takes it back, and keys of the table are letters', () => {
    expect(pressed(['/', 'q', 'p']).choice).toMatchObject({
      text: 'qp',
      prompt: { kind: 'filter' },
    });
    expect(pressed(['/', 'x', 'return']).choice).toMatchObject({ text: 'x', prompt: undefined });
    expect(pressed(['/', 'x', 'escape']).choice.text).toBe('');
    expect(pressed(['/', 'x', 'return', 'escape']).choice.text).toBe('');
    expect(pressed(['/', 'x', 'up', '\u0001']).choice.text).toBe('x');
  });

  it('sort, turn the order round, and choose states', () => {
    expect(pressed(['s']).choice.sort).toBe('id');
    expect(pressed(['S']).choice.descending).toBe(false);
    expect(pressed(['right']).choice.which).toBe('running');
    expect(pressed(['left', 'left']).choice.which).toBe('cancelled');
    expect(text(pressed(['s']).choice, data)).toContain('request↓');
    expect(text({}, data)).toContain('by created↓');
  });

  it('end the view: q with 0, Ctrl-C also in a prompt', () => {
    expect(pressed(['q']).effect).toEqual({ do: 'quit' });
    const ctrlC = { name: 'c', ctrl: true, sequence: '\u0003' };
    expect(press(pressed(['l']).choice, data, ctrlC, false).effect).toEqual({ do: 'interrupt' });
  });
});
