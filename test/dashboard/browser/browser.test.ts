/**
 * The pages of the dashboard in a real browser, before a living fleet. Needs Chromium: npm run test:dashboard
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { shownText } from '@piecework/protocol/contract';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fleet, HOSTILE, items, openBrowser, startFleet } from './fleet.js';
import { PAGES } from './pages.js';

const chromium = process.env['PIECEWORK_CHROMIUM'] ?? '/usr/bin/chromium';
const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

let fleet: Fleet;
let browser: Browser;
/** What the browser complained about: refused scripts and styles, exceptions. */
const complaints: string[] = [];

async function open(hash: string, options: object = {}): Promise<Page> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()))
      complaints.push(`${hash}: ${message.text()}`);
  });
  page.on('pageerror', ({ message }) => complaints.push(`${hash}: ${message}`));
  await page.goto(fleet.url + hash);
  await page.locator('main .panel, main table, main .nothing, main .problem').first().waitFor();
  return page;
}

describe.skipIf(!existsSync(chromium))('in Chromium', () => {
  beforeAll(async () => {
    [fleet, browser] = await Promise.all([startFleet(), openBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await fleet?.[Symbol.asyncDispose]();
  });

  it('shows the page to a visitor whose address has a name and a password', async () => {
    const page = await (await browser.newContext()).newPage();
    const { protocol, host, pathname } = new URL(fleet.url);
    await page.goto(`${protocol}//me:anything@${host}${pathname}`);
    await page.locator('main .panel, main table').first().waitFor();
    await page.context().close();
  });

  const ways = Object.keys(PAGES).flatMap((name) => [
    [name, 'light'] as const,
    [name, 'dark'] as const,
  ]);
  it.each(ways)('axe finds nothing on %s, %s', async (name, colorScheme) => {
    // axe is a script of another origin than the page, which its policy refuses.
    const page = await open(PAGES[name] as string, { colorScheme, bypassCSP: true });
    await page.addScriptTag({ path: axe });
    const { violations } = await page.evaluate<{
      violations: { id: string; nodes: { html: string }[] }[];
    }>('axe.run()');
    expect(violations.map(({ id, nodes }) => [id, nodes[0]?.html])).toEqual([]);
    await page.context().close();
  });

  it('never scrolls sideways on a phone, and shows which page it is, however narrow', async () => {
    for (const hash of Object.values(PAGES)) {
      const page = await open(hash, { viewport: { width: 390, height: 844 } });
      const wide = 'document.documentElement.scrollWidth';
      const seen = 'document.documentElement.clientWidth';
      const [inner, outer] = await page.evaluate<[number, number]>(`[${wide}, ${seen}]`);
      expect([hash, inner]).toEqual([hash, outer]);
      for (const width of [390, 320]) {
        await page.setViewportSize({ width, height: 844 });
        const tab = await page.locator('nav a[aria-current]').boundingBox();
        const isSeen = tab !== null && tab.x >= 0 && tab.x + tab.width <= width;
        expect([hash, width, isSeen]).toEqual([hash, width, true]);
      }
      await page.context().close();
    }
  });

  it('has colours that can be told from the ground, and clear placeholders, in both themes', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await open('#/req/requests', { colorScheme });
      const found = await page.evaluate<Record<string, number>>(`(() => {
        const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
        const of = (colour) => {
          canvas.fillStyle = colour;
          canvas.fillRect(0, 0, 1, 1);
          const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((byte) => {
            const share = byte / 255;
            return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
          });
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const style = getComputedStyle(document.documentElement);
        const panel = of(style.getPropertyValue('--panel'));
        const contrast = (colour) => {
          const [least, most] = [of(colour), panel].sort((a, b) => a - b);
          return (most + 0.05) / (least + 0.05);
        };
        const parts = ['succeeded', 'failed', 'cancelled', 'running', 'ready-edge', 'delayed'];
        const input = document.querySelector('input[type=search]');
        return {
          ...Object.fromEntries(parts.map((name) => [name, contrast(style.getPropertyValue('--' + name))])),
          placeholder: contrast(getComputedStyle(input, '::placeholder').color) - 1.5,
        };
      })()`);
      for (const [name, contrast] of Object.entries(found))
        expect([colorScheme, name, contrast >= 3]).toEqual([colorScheme, name, true]);
      await page.context().close();
    }
  });

  it('links a verdict to the pages and requests that it names, and counts its lines', async () => {
    const page = await open('#/req/overview');
    const verdict = page.getByRole('region', { name: 'Is all well?' });
    await verdict.getByRole('link', { name: 'mail-2026-11-20' }).waitFor();
    // The queue is younger than an hour.
    await page
      .getByText(/^since \d\d:\d\d(:\d\d)?$/)
      .first()
      .waitFor();
    // Of one moment: the list changes.
    const [title, lines] = await verdict.evaluate((section) => [
      section.querySelector('.answer')?.textContent ?? '',
      section.querySelectorAll('li').length,
    ]);
    expect(title).toMatch(/^(\d+) things? to look at$/);
    expect(Number.parseInt(String(title), 10)).toBe(lines);
    await verdict.getByRole('link', { name: 'See Workers' }).first().click();
    await page.waitForURL(/#\/req\/workers/);
    await page.context().close();
  });

  it('leads from a worker, wherever it is named, to its row', async () => {
    const page = await open('#/req/errors');
    const link = page.locator('.errors-table td.worker a').first();
    const name = (await link.textContent()) ?? '';
    // The first one may be another by now.
    await page.locator('.errors-table td.worker a', { hasText: name }).first().click();
    expect(await page.locator('tr.named th .id').textContent()).toBe(name);
    await page.context().close();
  });

  it('draws what runs below the slider on the same scale', async () => {
    const { id } = await fleet.pw.submit(items(20_000), {
      ...{ id: 'to-compare', task: 'embed-text', limit: 4, priority: 0 },
    });
    const page = await open(`#/req/request/${id}`);
    await expect
      .poll(
        () =>
          page.evaluate(`(() => {
            const slider = document.querySelector('#limit').getBoundingClientRect();
            const bar = document.querySelector('.effect span').getBoundingClientRect();
            const { min, max, value } = document.querySelector('#limit');
            const thumb = 16;
            const middle = slider.left + thumb / 2 + ((value - min) / (max - min)) * (slider.width - thumb);
            return Math.abs(bar.right - middle) < 2;
          })()`),
        { timeout: 15_000 },
      )
      .toBe(true);
    await fleet.pw.request(id).cancel();
    await page.context().close();
  });

  it('shows what users wrote as text, and runs nothing of it', async () => {
    // The page of the last errors shows few: errors of others would be later ones soon.
    const crawl = fleet.pw.request('crawl-2026-11-23');
    await crawl.cancel();
    for (const id of ['crawl-2026-11-22', crawl.id]) await fleet.pw.request(id).completion();
    for (const [i, hostile] of HOSTILE.entries())
      await fleet.pw.submit(
        [
          { n: 0, hostile },
          { n: 1, hostile, named: true },
        ],
        {
          ...{ id: `hostile-${i}`, task: 'fetch-page', metadata: { hostile }, priority: 0 },
        },
      );
    for (let i = 0; i < HOSTILE.length; i++) await fleet.pw.request(`hostile-${i}`).completion();
    const page = await open('#/req/requests?text=hostile');
    await page.getByText(`${HOSTILE.length} requests`).waitFor();
    const look = async () => {
      const state = `({
        pwned: 'pwned' in globalThis,
        foreign: document.querySelectorAll('main img, main script, main svg').length,
      })`;
      expect(await page.evaluate(state)).toEqual({ pwned: false, foreign: 0 });
    };
    await look();
    for (const [i, hostile] of HOSTILE.entries()) {
      await page.goto(`${fleet.url}#/req/request/hostile-${i}`);
      await page.getByText('Stack and payload of sub-request 0').click();
      await page.locator('.detail pre').first().waitFor();
      const shown = await page.locator('.message bdi').first().textContent();
      expect(shown?.slice(0, 1_000)).toBe(shownText(hostile).slice(0, 1_000));
      // The class of one is hostile as well.
      expect(await page.locator('.errors b.bad').count()).toBe(2);
      await look();
    }
    await page.goto(`${fleet.url}#/req/errors`);
    await page.getByText('HostileError').first().waitFor();
    await look();
    await page.context().close();
  });

  it('changes the limit by its slider, pauses, resumes, and the server follows', async () => {
    const { id } = await fleet.pw.submit(items(50_000), {
      id: 'to-steer',
      task: 'embed-text',
      limit: 5,
    });
    const page = await open(`#/req/request/${id}`);
    const handle = fleet.pw.request(id);
    const slider = page.getByRole('slider');
    await slider.focus();
    await slider.press('Home');
    await expect.poll(async () => (await handle.status()).limit).toBe(1);
    await slider.press('ArrowRight');
    await expect.poll(async () => (await handle.status()).limit).toBe(2);
    await page.getByText('Limit 2.').waitFor();
    await page.getByRole('button', { name: 'No limit' }).click();
    await expect.poll(async () => (await handle.status()).limit).toBe(null);
    await page.getByLabel('Priority, 0 is served first').fill('61');
    await page.getByLabel('Priority, 0 is served first').press('Tab');
    await expect.poll(async () => (await handle.status()).priority).toBe(61);
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await expect.poll(async () => (await handle.status()).waitingFor).toBe('resume');
    await page.getByRole('button', { name: 'Resume' }).click();
    await expect.poll(async () => (await handle.status()).waitingFor).not.toBe('resume');
    await page.context().close();
  });

  it('redrives, cancels, and drops only when the id is typed', async () => {
    const { id } = await fleet.pw.submit(items(30), {
      id: 'to-change',
      task: 'fetch-page',
      priority: 0,
    });
    const handle = fleet.pw.request(id);
    await handle.completion();
    const { generation } = await handle.status();
    const page = await open(`#/req/request/${id}`);
    await page.getByRole('button', { name: 'Redrive …' }).click();
    await page.getByRole('radio', { name: 'those of HttpError' }).check();
    await page.getByRole('button', { name: 'Redrive', exact: true }).click();
    await expect.poll(async () => (await handle.status()).generation).not.toBe(generation);
    await handle.completion();

    await fleet.pw.submit(items(500), { id: 'to-cancel', task: 'embed-text', limit: 1 });
    await page.goto(`${fleet.url}#/req/request/to-cancel`);
    await page.getByRole('button', { name: 'Cancel …' }).click();
    await page.getByRole('button', { name: 'Cancel the request' }).click();
    await expect
      .poll(async () => (await fleet.pw.request('to-cancel').status()).outcome)
      .toBe('cancelled');

    await page.goto(`${fleet.url}#/req/request/${id}`);
    await page.getByRole('button', { name: 'Drop …' }).click();
    const drop = page.getByRole('button', { name: 'Drop the request' });
    expect(await drop.isDisabled()).toBe(true);
    await page.getByLabel('Type its id to confirm').fill(id);
    await drop.click();
    await expect.poll(async () => handle.status().catch(({ code }) => code)).toBe('DROPPED');
    await page.waitForURL(/#\/req\/requests/);
    await page.context().close();
  });

  it('is used by the keyboard alone', async () => {
    // An open one has a slider, however long the tests before took.
    await fleet.pw.submit(items(3), { id: 'waits-for-keys', task: 'send-mail', delayMs: 900_000 });
    const page = await open('#/req/overview');
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toContain('Skip');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.id')).toBe('main');
    await page.getByRole('link', { name: 'Requests', exact: true }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('searchbox').focus();
    await page.keyboard.type('waits-for');
    await page.getByText('1 request', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'waits-for-keys' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('slider').waitFor();
    await page.context().close();
  });

  it('says when it is cut off, and goes on by itself', async () => {
    const page = await open('#/req/workers');
    await page.getByText('Live', { exact: true }).waitFor();
    await page.context().setOffline(true);
    await page.reload().catch(() => {});
    await page.context().setOffline(false);
    await page.goto(`${fleet.url}#/req/workers`);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.context().close();
  });

  it('says that too many pages are open, and goes on when one is closed', async () => {
    // With --insecure, all pages of one address are those of one visitor.
    const others: Response[] = [];
    const leave = new AbortController();
    for (let status = 200; status === 200; ) {
      const one = await fetch(`${fleet.url}api/events?queue=req&view=workers`, {
        signal: leave.signal,
      });
      status = one.status;
      others.push(one);
    }
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${fleet.url}#/req/workers`);
    await page
      .getByText(
        'You have too many pages of the dashboard open: close some, and this one continues.',
      )
      .waitFor();
    leave.abort();
    await page.getByText('Live', { exact: true }).waitFor();
    expect(await page.getByText('too many pages').count()).toBe(0);
    await page.context().close();
  });

  it('makes the browser complain about nothing', () => {
    expect(complaints.filter((line) => !/ERR_INTERNET_DISCONNECTED/.test(line))).toEqual([]);
  });
});
