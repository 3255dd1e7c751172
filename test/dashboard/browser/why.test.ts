/**
 * The sentence that says why a request is not further, in all places that show it: `status` with and without --json,
 * `list`, `top`, the page of the request and the TimeoutError of who waits for it.
 */
import { existsSync } from 'node:fs';
import { serveDashboard } from '@piecework/dashboard';
import { Piecework, type RequestHandle, Worker } from 'piecework';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { STARTS } from '../../support/cli.js';
import { type CommandLine, test } from '../../support/command-line.js';
import { gate, Log } from '../../support/flow.js';
import { hasTerminals, screenOf, startOnTerminal } from '../../support/terminal.js';
import { until } from '../../support/until.js';
import { openBrowser } from './fleet.js';

const chromium = process.env['PIECEWORK_CHROMIUM'] ?? '/usr/bin/chromium';

/** What changes from one second to the next. */
const timeless = (text: string) =>
  text
    .replace(/\s+/g, ' ')
    .replace(/\d+ (?:ms|s|min)\b/g, 'N')
    .trim();

let browser: Browser;

/** The sentence of `request`, which `says` matches, is what each place shows; the page also calls its state `state`. */
async function expectEverywhere(
  { redis, queue, run }: CommandLine,
  request: RequestHandle,
  says: RegExp,
  state?: string,
): Promise<void> {
  const { id } = request;
  const why = async () => timeless((await request.status()).why);
  await until(async () => says.test(await why()), { what: `${id}: ${says}`, ...STARTS });
  const sentence = await why();
  expect(timeless((await run('status', id)).stdout)).toContain(` why ${sentence} generation `);
  expect(timeless(JSON.parse((await run('status', id, '--json')).stdout).why)).toBe(sentence);
  const listed = (await run('list', '--state', 'all')).stdout.split('\n');
  const at = listed.findIndex((line) => line.startsWith(id));
  expect(timeless(listed[at + 1] ?? '')).toBe(sentence);
  const { status } = await request.status();
  if (status !== 'complete')
    expect(
      timeless(
        String(await request.completion({ timeoutMs: 1 }).catch((error: Error) => error.message)),
      ),
    ).toBe(`completion of ${id}: not within N; ${sentence}`);

  const top = startOnTerminal(['top', '--queue', queue], { redis, columns: 80, rows: 40 });
  try {
    const screen = () => screenOf(top.said.stdout);
    const shows = (what: string) =>
      until(() => timeless(screen().join(' ')).includes(what), {
        what: `top shows ${what}, not ${screen().join('\n')}`,
        ...STARTS,
      });
    await shows('workers ');
    // To all requests, also those that have ended.
    if (status === 'complete') top.type('\u001b[D');
    top.type(`/${id}\r`);
    await until(() => screen().some((line) => line.startsWith(`${id}: ${sentence.slice(0, 9)}`)), {
      what: `top says why below its table, not ${screen().join('\n')}`,
      ...STARTS,
    });
    top.type('\r');
    await shows(sentence);
    for (const line of screen()) expect(line.length).toBeLessThanOrEqual(80);
  } finally {
    top.type('q');
    await top.finished;
  }

  const served = await serveDashboard({
    redis,
    port: 0,
    insecure: true,
    queues: [{ name: queue }],
  });
  try {
    const page = await browser.newPage();
    await page.goto(`${served.url}#/${queue}/request/${id}`);
    const shown = page.locator('section.progress p.standing');
    await expect
      .poll(async () => timeless((await shown.textContent()) ?? '').toLowerCase(), {
        timeout: 30_000,
      })
      .toBe(`${sentence}.`.toLowerCase());
    if (state) expect(await page.locator('h1 .chip').textContent()).toBe(state);
    await page.close();
  } finally {
    await served.close();
  }
}

describe.skipIf(!existsSync(chromium) || !hasTerminals)('why a request is not further', () => {
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.close());

  const quietly = { maxBlockMs: 0, logger: new Log() as never };

  test('nobody works, then it is paused, then it was cancelled', async ({ commandLine }) => {
    const { redis, queue } = commandLine;
    await using pw = new Piecework({ redis, queue });
    const request = await pw.submit([1, 2], { id: `r-${queue}` });
    await expectEverywhere(commandLine, request, /^its queue has no worker\. Start one/);
    await request.pause();
    await expectEverywhere(commandLine, request, /^it is paused. Resume it$/);
    await request.cancel();
    await expectEverywhere(commandLine, request, /^it ended early, as it was cancelled; 0 succ/);
  });

  test('other requests have all slots, and its own handler hangs', async ({ commandLine }) => {
    const { redis, queue } = commandLine;
    await using pw = new Piecework({ redis, queue });
    const hung = gate();
    await using worker = new Worker({
      ...{ redis, queue, ...quietly },
      ...{ concurrency: 1, quantumMs: 0 },
      handler: async (n) => n === 1 && (await hung.opened),
    });
    await worker.start();
    const [first, second] = [`first-${queue}`, `second-${queue}`];
    const busy = await pw.submit([0, 1], { id: first, limit: 1, priority: 3 });
    await until(async () => (await busy.status()).counts.succeeded === 1);
    const waiting = await pw.submit([2], { id: second });
    await expectEverywhere(
      commandLine,
      waiting,
      /^the only slot of one worker is taken by handlers of first-\S+ \(priority 3\)/,
    );
    await expectEverywhere(
      commandLine,
      busy,
      /^sub-request 1 has been running for N on \S+, usually N\. If it hangs/,
    );
    await busy.pause();
    await expectEverywhere(commandLine, busy, /^it is paused; 1 still runs\. Resume it$/, 'paused');
    await busy.resume();
    hung.open();
    await Promise.all([busy.completion(), waiting.completion()]);
  });

  test('nobody serves its task, and only retries are left', async ({ commandLine }) => {
    const { redis, queue } = commandLine;
    await using pw = new Piecework({ redis, queue });
    await using worker = new Worker({
      ...{ redis, queue, ...quietly },
      handlers: [
        {
          task: 'mail',
          run: () => {
            throw new TypeError('no such address');
          },
        },
      ],
    });
    await worker.start();
    const other = await pw.submit([1], { id: `other-${queue}`, task: 'pages' });
    await expectEverywhere(commandLine, other, /^no worker serves task pages. Start one that does/);
    await other.cancel();
    const mail = await pw.submit([1], {
      ...{ id: `mail-${queue}`, task: 'mail', attempts: 2 },
      backoff: { type: 'fixed', delayMs: 3_600_000 },
    });
    await expectEverywhere(
      commandLine,
      mail,
      /^1 waits for its next attempt, which is due in N; the last error: TypeError: no such address \(index 0\)\. Wait, or cancel/,
    );
    await mail.cancel();
  });
});
