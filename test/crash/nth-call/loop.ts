import pMap from 'p-map';
import pTimeout from 'p-timeout';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useTestClock, withOwnClock } from '../../support/clock.js';
import { FAULTS, FAULTY, type Fault, FaultyClients } from '../../support/faulty-client.js';
import { nodesOf } from '../../support/flow.js';
import { connected } from '../../support/given.js';
import { testEvery, testPart } from '../../support/mode.js';
import { againstCluster, testConnection } from '../../support/redis.js';
import { until } from '../../support/until.js';
import { Stage } from './stage.js';

/*
 * The n-th call loop. For each role and each fault: in the first case the first round trip of the
 * actor goes wrong, in the second the second, and so on until one needs no n-th. Whatever it was,
 * every request has to end with exact counts, each index settled once, and nothing left behind.
 *
 * PIECEWORK_NTH='<fault> <n>' plays one case alone. PIECEWORK_TEST_EVERY=3: of each fault every third
 * case, so that every call still meets a third of the faults.
 */

/** Faults at once, and cases of one fault at once. In a cluster each client has several connections. */
const FAULTS_AT_ONCE = againstCluster ? 2 : 4;
const CASES_AT_ONCE = 4;

const only = /^(.+) (\d+)$/.exec(process.env['PIECEWORK_NTH'] ?? '');
const rejections: unknown[] = [];
const note = (reason: unknown) => rejections.push(reason);
let cases = 0;
let before = 0;

/** How many connections there are; of a cluster, whose own come and go, those of actors. */
async function connections(): Promise<number> {
  const lists = await Promise.all(nodesOf(await connected()).map((node) => node.client('LIST')));
  const lines = lists.flatMap((list) => String(list).trim().split('\n'));
  return lines.filter((line) => !againstCluster || line.includes(` name=${FAULTY} `)).length;
}

export type Play = (stage: Stage) => Promise<string[]>;

/** So long a case may take, far beyond what it does, so that one that hangs tells which it is. */
const CASE_MS = 60_000;

/** Plays one case. Answers whether the n-th call came, and whether the fault could befall it. */
function play(role: Play, fault: Fault, n: number) {
  return withOwnClock(async () => {
    const faults = new FaultyClients(n, fault);
    const stage = new Stage(await testConnection(), await connected(), faults);
    const wrong: string[] = [];
    let story = '';
    try {
      wrong.push(...(await pTimeout(role(stage), { milliseconds: CASE_MS })));
    } catch (error) {
      wrong.push(`${error} ${(error as Error).cause ?? ''}`);
    }
    if (wrong.length > 0) story = await stage.story();
    wrong.push(
      ...(await pTimeout(stage.close(), { milliseconds: CASE_MS }).catch((error: unknown) => [
        String(error),
      ])),
    );
    if (wrong.length === 0) return faults.struck;
    throw new Error(`call ${n}, ${fault}: ${wrong.join('; ')}\n${story || (await stage.story())}`);
  });
}

/** n = 1, 2, 3 … until a run needs no n-th call. Answers how many calls there were to fail. */
async function loop(role: Play, fault: Fault): Promise<number> {
  for (
    let from = 1 + ((FAULTS.indexOf(fault) + testPart) % testEvery);
    ;
    from += CASES_AT_ONCE * testEvery
  ) {
    const ns = Array.from({ length: CASES_AT_ONCE }, (_, i) => from + i * testEvery);
    const struck = await Promise.all(ns.map((n) => play(role, fault, n)));
    cases += struck.filter((one) => one === 'struck').length;
    const end = struck.indexOf('not yet');
    if (end >= 0) return from + end * testEvery - 1;
  }
}

/** The loop over these roles, as the tests of one file. */
export function playRoles(roles: Readonly<Record<string, Play>>): void {
  useTestClock();

  describe('whatever becomes of the n-th call', { tags: ['own-server'] }, () => {
    beforeAll(async () => {
      before = await connections();
      process.on('unhandledRejection', note);
    });

    afterAll(() => {
      process.off('unhandledRejection', note);
      console.log(`N-th call loop: ${cases} cases`);
    });

    for (const [name, role] of Object.entries(roles)) {
      it(`${name}: all ends well`, async () => {
        if (only) {
          await play(role, only[1] as Fault, Number(only[2]));
          return;
        }
        const had = cases;
        const calls = await pMap(FAULTS, (fault) => loop(role, fault), {
          concurrency: FAULTS_AT_ONCE,
          stopOnError: false,
        });
        console.log(
          `${name}: ${cases - had} cases, ${Math.min(...calls)} to ${Math.max(...calls)} calls`,
        );
        // What is submitted in one call needs two: one says whether the server can be used.
        const least = name.includes('in one call') ? 1 : 3;
        expect(Math.max(...calls)).toBeGreaterThan(againstCluster ? Math.min(least, 2) : least);
        // Of a cluster not all calls go through the actor's client, and others may leave it little to do.
        expect(Math.min(...calls)).toBeGreaterThan(againstCluster ? 0 : least);
      }, 600_000);
    }

    it('leaves no connection and no rejection that nobody handled', async () => {
      await until(async () => (await connections()) <= before);
      expect(rejections).toEqual([]);
    });
  });
}
