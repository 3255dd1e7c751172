import { run } from '@piecework/protocol/testing';
import { expect } from 'vitest';
import { useTestClock } from '../support/clock.js';
import { given, Hand, PRODUCER, type Scene, success } from '../support/given.js';
import { completeWithFailures, redriveOf } from '../support/redriven.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * Short histories of what the scripts answer about another life of an id than their caller knows.
 */

useTestClock();

const read = ({ connection, request }: Scene, generation: number) =>
  run(connection.client, 'read-results', request.keys, {
    generation,
    from: '-',
    to: '+',
    count: 9,
  });

const verdictOf = async (scene: Scene, generation: number) =>
  (await read(scene, generation)).verdict;

const traces: Record<string, Trace> = {
  'results are those of the life of which their reader knows, or of any if it knows none': {
    async play() {
      const scene = await completeWithFailures([1]);
      const { generation } = scene;
      for (const known of [0, generation]) expect(await verdictOf(scene, known)).toBe('read');
      for (const other of [generation - 1, generation + 1])
        expect(await verdictOf(scene, other)).toBe('gone');
    },
    without: [
      {
        script: 'read-results',
        cure: 'results of another life of the id are not read',
        change: 'never',
      },
    ],
  },

  'a redrive continues the life of the generations before': {
    async play() {
      const scene = await completeWithFailures([1]);
      const { id, generation, queue } = scene;
      const next = await queue.intent(id);
      await redriveOf(scene).open(next, 'redriver', 60_000);
      for (const known of [generation, next]) expect(await verdictOf(scene, known)).toBe('read');
    },
    without: [{ script: 'redrive', cure: 'a redriven request knows its first generation' }],
  },

  'long results are read from the first generation of their life on': {
    async play() {
      const scene = await given.created({ limit: 100 });
      const { request, generation } = scene;
      await request.append(generation, PRODUCER, 0, ['0']);
      await request.seal(generation, PRODUCER, 1);
      const hand = new Hand(scene);
      const [entry] = await hand.hold(1);
      await hand.trySettle([success(entry!, `"${'x'.repeat(600_000)}"`)]);
      expect(await read(scene, generation)).toMatchObject({ from: `${generation}-0` });
    },
    without: [
      {
        script: 'read-results',
        cure: 'long results of another life of the id are not read',
        change: { becomes: 'from' },
      },
    ],
  },
};

playTraces('lives of an id', traces);
