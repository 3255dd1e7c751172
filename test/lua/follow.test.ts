import { ReaderCommands } from '@piecework/protocol';
import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { given, Hand, type Scene, success } from '../support/given.js';
import { running } from '../support/read-ahead.js';

useTestClock();

const reader = ({ connection, id }: Scene) => new ReaderCommands(connection, id);

describe('follow', () => {
  it('lets settles and enters say that somebody follows, for some seconds', async () => {
    const { scene, hand, entries } = await running(3);
    const [first, second, third] = entries.map((entry) => success(entry));
    expect(await hand.settle([first!])).toMatchObject({ live: false });
    expect(await reader(scene).follow(scene.generation)).toEqual({ verdict: 'noted' });
    expect(await hand.settle([second!])).toMatchObject({ live: true });
    expect(await new Hand(scene, 'other').tryEnter(1, [])).toMatchObject({ live: true });
    moveClock(5_001);
    expect(await hand.settle([third!])).toMatchObject({ live: false });
    expect(await new Hand(scene, 'other').tryEnter(1, [])).toMatchObject({ live: false });
  });

  it('follows no request that is complete, and no other generation', async () => {
    const { scene, hand, entries } = await running(2, { items: 2 });
    const other = await reader(scene).follow(scene.generation - 1);
    expect(other).toEqual({ verdict: 'gone' });
    await hand.trySettle(entries.map((entry) => success(entry)));
    expect(await reader(scene).follow(scene.generation)).toEqual({ verdict: 'complete' });
    const nothing = await given.nothing();
    expect(await reader(nothing).follow(1)).toEqual({ verdict: 'gone' });
  });
});
