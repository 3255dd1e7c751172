/**
 * Makes the screenshots of docs/dashboard: PIECEWORK_SCREENSHOTS=1 npm run test:dashboard -- screenshots
 */
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { it } from 'vitest';
import { openBrowser, startFleet } from './fleet.js';
import { PAGES } from './pages.js';

const to = fileURLToPath(new URL('../../../docs/dashboard/', import.meta.url));
const KINDS = {
  desktop: { viewport: { width: 1_440, height: 900 } },
  phone: { viewport: { width: 390, height: 844 } },
  dark: { viewport: { width: 1_440, height: 900 }, colorScheme: 'dark' },
} as const;
/** A minute of life, so that there is something to see. */
const LIVES_MS = 45_000;
const WATCHED_MS = 6_000;

it.runIf(process.env['PIECEWORK_SCREENSHOTS'])(
  'every page, as pictures',
  async () => {
    mkdirSync(to, { recursive: true });
    await using fleet = await startFleet();
    const browser = await openBrowser();
    const first = await browser.newPage();
    await first.goto(`${fleet.url}${PAGES['overview']}`);
    await new Promise((resolve) => setTimeout(resolve, LIVES_MS));
    for (const [kind, options] of Object.entries(KINDS))
      for (const [name, hash] of Object.entries(PAGES)) {
        const page = await browser.newPage(options);
        await page.goto(fleet.url + hash);
        await page.waitForTimeout(name === 'request' ? WATCHED_MS : 2_500);
        await page.screenshot({ path: `${to}${kind}-${name}.png` });
        await page.close();
      }
    await browser.close();
  },
  600_000,
);
