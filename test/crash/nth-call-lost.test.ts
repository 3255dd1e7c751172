import { Redis } from 'ioredis';
import pMap from 'p-map';
import pTimeout from 'p-timeout';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildScripts } from '../../scripts/lua-source.mjs';
import { useTestClock, withOwnClock } from '../support/clock.js';
import { testEvery, testPart } from '../support/mode.js';
import { startOwnRedis } from '../support/redis.js';
import { LostAfter } from './nth-call/lost-after.js';
import { type LostRole, lostRoles } from './nth-call/lost-roles.js';

/*
 * The server loses its last writes behind the n-th call of one role: behind the first in the first case, behind the
 * second in the second, and so on, the call and some before it (docs/guarantees.md, What the server must keep).
 *
 * PIECEWORK_NTH='<back> <n>' plays one case alone. PIECEWORK_TEST_EVERY=3: the first and every third case.
 */

/** How many calls before the n-th are lost with it: taken in turn, call by call. */
const BACK = [0, 1, 3, 7];
/** Cases side by side, each on a server of its own. */
const LANES = 8;
/** So long a case may take, far beyond what it does, so that one that hangs tells which it is. */
const CASE_MS = 60_000;

const only = /^(\d+) (\d+)$/.exec(process.env['PIECEWORK_NTH'] ?? '');
const servers: { url: string; keeper: Redis; stop: () => Promise<unknown> }[] = [];

async function start() {
  const server = await startOwnRedis();
  const keeper = new Redis(server.url, { protocol: 2 });
  servers.push({ url: server.url, keeper, stop: () => server.close() });
  // Else the first calls of a server would bring the scripts, and no case is about that.
  for (const { lua } of Object.values(buildScripts({ clock: 'test' })))
    await keeper.script('LOAD', lua);
}

/** Answers whether the n-th call came. */
function play(role: LostRole, url: string, keeper: Redis, n: number, back: number) {
  return withOwnClock(async () => {
    await keeper.flushall();
    const stage = await LostAfter.open(url, keeper, n, back);
    const wrong: string[] = [];
    try {
      wrong.push(...(await pTimeout(role(stage), { milliseconds: CASE_MS })));
    } catch (error) {
      wrong.push(`${error} ${(error as Error).cause ?? ''}`);
    }
    const story = wrong.length > 0 ? await stage.story() : '';
    wrong.push(...(await stage.close()));
    if (wrong.length === 0) return stage.actor.forgot;
    throw new Error(`call ${n} and ${back} before it: ${wrong.join('; ')}\n${story}`);
  });
}

/** Every n-th case of a lane until a run has no such call. Answers how many there were. */
async function loop(role: LostRole, lane: number): Promise<number> {
  const { url, keeper } = servers[lane] as (typeof servers)[number];
  if (only) return Number(await play(role, url, keeper, Number(only[2]), Number(only[1])));
  // A role may have two calls only, so the first case is in every part.
  const first = lane === 0 && testPart > 0 && (await play(role, url, keeper, 1, 0)) ? 1 : 0;
  for (let cases = 0; ; cases += 1) {
    const i = (lane + cases * LANES) * testEvery + testPart;
    if (!(await play(role, url, keeper, i + 1, BACK[i % BACK.length] as number)))
      return first + cases;
  }
}

describe('after the server lost the n-th call', { tags: ['own-server', 'processes'] }, () => {
  useTestClock();

  beforeAll(async () => {
    await Promise.all(Array.from({ length: only ? 1 : LANES }, start));
  });

  afterAll(async () => {
    for (const { keeper } of servers) keeper.disconnect();
    await Promise.all(servers.map(({ stop }) => stop()));
  });

  for (const [name, role] of Object.entries(lostRoles)) {
    it(`${name}: all that was answered since is kept`, { timeout: 600_000 }, async () => {
      const lanes = servers.map((_, lane) => lane);
      const lost = await pMap(lanes, (lane) => loop(role, lane), { stopOnError: false });
      const cases = lost.reduce((sum, n) => sum + n, 0);
      console.log(`${name}: ${cases} cases`);
      expect(cases).toBeGreaterThan(0);
    });
  }
});
