/**
 * That the pages of the dashboard come up in a real browser; test/dashboard/browser looks at what they show.
 * @module-tag own-server
 */
import { existsSync } from 'node:fs';
import { serveDashboard } from '@piecework/dashboard';
import { Piecework } from 'piecework';
import { chromium } from 'playwright-core';
import { expect } from 'vitest';
import { test } from '../support/flow.js';
import { startOwnRedis } from '../support/redis.js';

const program = process.env['PIECEWORK_CHROMIUM'] ?? '/usr/bin/chromium';

test.skipIf(!existsSync(program))(
  'each page comes up, and a text shows its hidden characters',
  async ({ flow }) => {
    const { url, close } = await startOwnRedis();
    flow.after(close);
    await using pw = new Piecework({ redis: url, queue: flow.queue });
    await pw.submit([1], { id: flow.id('one'), metadata: { customer: 'evil \u202Ename' } });
    const dashboard = await serveDashboard({
      redis: url,
      queues: [{ name: flow.queue }],
      port: 0,
      insecure: true,
    });
    flow.after(() => dashboard.close());
    const browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox'] });
    flow.after(() => browser.close());
    for (const hash of ['overview', 'requests', 'workers', 'errors', `request/${flow.id('one')}`]) {
      const page = await browser.newPage();
      const complaints: string[] = [];
      page.on('pageerror', ({ message }) => complaints.push(message));
      await page.goto(`${dashboard.url}#/${flow.queue}/${hash}`);
      await page.locator('main .panel, main table, main .nothing').first().waitFor();
      expect([hash, complaints]).toEqual([hash, []]);
      if (hash.startsWith('request/'))
        expect(await page.textContent('main')).toContain('evil \\u202ename');
      await page.close();
    }
  },
);
