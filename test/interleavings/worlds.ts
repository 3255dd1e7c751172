import { pause } from '@piecework/protocol';
import { payloads } from '../cast/roles/handler.js';
import { large, longer } from './long-worlds.js';
import type { World } from './play.js';
import { sealed, submitted, submittedWhole } from './requests.js';

/*
 * The worlds that histories play in. `smallest` are those whose orders are gone through one by one.
 */

export const smallest: Record<string, World> = {
  'one worker, one sub-request': {
    before: () => sealed('a', payloads(1), { limit: 1 }),
    requests: [{ id: 'a', payloads: payloads(1) }],
    enter: (cast) => {
      cast.worker('w1');
      cast.waiter('n', 'a');
    },
  },
  'two workers, two sub-requests': {
    before: () => sealed('a', payloads(2), { limit: 1 }),
    requests: [{ id: 'a', payloads: payloads(2) }],
    enter: (cast) => {
      cast.worker('w1', { concurrency: 1 });
      cast.worker('w2', { concurrency: 1 });
    },
  },
  'a producer and a worker': {
    requests: [{ id: 'a', payloads: payloads(1), byProducer: true, mayCancel: true }],
    enter: (cast) => {
      const { items, options } = submitted('a', payloads(1));
      cast.producer('p', (producer) => producer.submit([...items], options), {
        onSubmitted: (id) => cast.waiter('n', id),
      });
      cast.worker('w1');
    },
  },
  'a whole submission and a worker': {
    requests: [{ id: 'a', payloads: payloads(2), byProducer: true, mayCancel: true }],
    enter: (cast) => {
      const { items, options } = submitted('a', payloads(2));
      cast.producer('p', (producer) => producer.submit([...items], options), {
        onSubmitted: (id) => cast.waiter('n', id),
        whole: true,
      });
      cast.worker('w1');
    },
  },
};

export const larger: Record<string, World> = {
  'two requests take turns': {
    before: async () => {
      await sealed('a', payloads(4, 1), { limit: 2, attempts: 2 });
      await sealed('b', payloads(3), { limit: 1 });
    },
    requests: [
      { id: 'a', payloads: payloads(4, 1) },
      { id: 'b', payloads: payloads(3) },
    ],
    enter: (cast) => {
      cast.worker('w1', { quantumMs: 0 });
      cast.worker('w2', { quantumMs: 0, concurrency: 1 });
      cast.waiter('na', 'a');
      cast.waiter('nb', 'b');
    },
  },
  'one is cancelled': {
    before: async () => {
      await sealed('a', payloads(5, 0), { limit: 2, attempts: 2 });
      await sealed('b', payloads(2), { limit: 2, priority: 10 });
    },
    priorities: [10, 50],
    requests: [
      { id: 'a', payloads: payloads(5, 0), isCancelled: true },
      { id: 'b', payloads: payloads(2) },
    ],
    enter: (cast) => {
      cast.worker('w1');
      cast.worker('w2');
      cast.waiter('n', 'a');
      cast.canceller('c', 'a');
    },
  },
  'a caller asks again': {
    requests: [
      { id: 'a', payloads: payloads(3), byProducer: true, mayCancel: true },
      { id: 'b', payloads: payloads(2, 1), byProducer: true, mayCancel: true },
    ],
    enter: (cast) => {
      const a = submitted('a', payloads(3), { limit: 2, producerLeaseMs: 100_000 });
      const asks = (name: string) =>
        cast.producer(name, (producer) => producer.submit([...a.items], a.options), {
          onSubmitted: (id) => cast.waiter('n', id),
          heir: () => asks(`${name}'`),
        });
      asks('p');
      const b = submitted('b', payloads(2, 1), { onProducerLost: 'seal' });
      cast.producer('s', (producer) => producer.submit([...b.items], b.options));
      cast.worker('w1');
      cast.worker('w2', { concurrency: 1 });
    },
  },
  'asked for in both ways': {
    requests: [{ id: 'a', payloads: payloads(3), byProducer: true, mayCancel: true }],
    enter: (cast) => {
      const { items, options } = submitted('a', payloads(3), {
        limit: 2,
        producerLeaseMs: 100_000,
      });
      const asks = (name: string, whole: boolean) =>
        cast.producer(name, (producer) => producer.submit([...items], options), {
          onSubmitted: (id) => cast.waiter(`n${name}`, id),
          heir: () => asks(`${name}'`, !whole),
          whole,
        });
      asks('p', true);
      asks('s', false);
      cast.worker('w1');
      cast.worker('w2', { concurrency: 1 });
    },
  },
  'small requests, read as a whole': {
    before: async () => {
      await submittedWhole('a', payloads(3, 1), { limit: 3, attempts: 2 });
      await submittedWhole('b', payloads(1), { limit: 1 });
    },
    requests: [
      { id: 'a', payloads: payloads(3, 1) },
      { id: 'b', payloads: payloads(1), isCancelled: true },
    ],
    enter: (cast) => {
      cast.leavingWorker('w1', { concurrency: 3 });
      cast.worker('w2', { concurrency: 4 });
      cast.waiter('n', 'a');
      cast.canceller('c', 'b');
    },
  },
  'dropped and submitted whole': {
    before: () => sealed('a', payloads(3), { limit: 2 }),
    requests: [{ id: 'a', payloads: payloads(3), byProducer: true, mayCancel: true }],
    enter: (cast) => {
      cast.worker('w1');
      cast.worker('w2', { concurrency: 1 });
      const { items, options } = submitted('a', payloads(3), { limit: 2 });
      cast.dropper('d', 'a', () => {
        cast.producer('p', (producer) => producer.submit([...items], options), { whole: true });
      });
    },
  },
  'a producer that may die': {
    requests: [
      { id: 'a', payloads: payloads(4), byProducer: true, mayCancel: true },
      { id: 'b', payloads: payloads(4), byProducer: true },
    ],
    enter: (cast) => {
      for (const [id, onProducerLost] of [
        ['a', 'cancel'],
        ['b', 'seal'],
      ] as const) {
        const { items, options } = submitted(id, payloads(4), { limit: 2, onProducerLost });
        const all = { ...options, window: 8 };
        cast.producer(`p${id}`, (producer) => producer.submit([...items], all));
      }
      cast.worker('w1');
    },
  },
  'appended in pieces': {
    requests: [{ id: 'a', payloads: payloads(4), byProducer: true, mayCancel: true }],
    enter: (cast) => {
      const options = { id: 'a', limit: 1, producerLeaseMs: 9_000 };
      cast.producer('p', async (producer) => {
        const request = await producer.open(options);
        try {
          for (const item of payloads(4)) {
            await request.append(item);
            await request.flush();
            // Longer than its lease would last unrenewed, all in all.
            await pause(4_000);
          }
          await request.seal();
          return request;
        } finally {
          request.leave();
        }
      });
      cast.worker('w1');
      cast.worker('w2', { concurrency: 1 });
    },
  },
  'crashes count': {
    before: () => sealed('a', payloads(4, 2), { limit: 3, maxCrashes: 2, attempts: 2 }),
    requests: [{ id: 'a', payloads: payloads(4, 2) }],
    enter: (cast) => {
      cast.worker('w1');
      cast.worker('w2');
    },
  },
  'one who does not serve the task': {
    before: () => sealed('a', payloads(4, 0), { limit: 2, task: 'census', attempts: 2 }),
    requests: [{ id: 'a', payloads: payloads(4, 0) }],
    atOnce: false,
    enter: (cast) => {
      cast.worker('w1', {}, 'tax');
      cast.worker('w2', {}, 'census');
    },
  },
  'dropped and used again': {
    before: () => sealed('a', payloads(3), { limit: 2 }),
    requests: [{ id: 'a', payloads: payloads(3), byProducer: true, mayCancel: true }],
    enter: (cast) => {
      cast.worker('w1');
      cast.worker('w2', { concurrency: 1 });
      const { items, options } = submitted('a', payloads(3), { limit: 2 });
      cast.dropper('d', 'a', () => {
        cast.producer('p', (producer) => producer.submit([...items], options));
      });
    },
  },
};

/** Those that histories at random play in, and all. */
export const played: Record<string, World> = { ...smallest, ...larger, ...longer };
export const worlds: Record<string, World> = { ...played, ...large };
