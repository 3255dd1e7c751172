import { pause } from '@piecework/protocol';
import { DEADLY, payloads, SLOW } from '../cast/roles/handler.js';
import type { World } from './play.js';
import { retained, sealed, submitted, submittedWhole } from './requests.js';

/*
 * Worlds in which something takes long: handlers that run while a lease ends elsewhere, a worker that
 * closes, what is retained, a sub-request that ends whoever runs it.
 */

const work = ['slow 0', 'slow bad 1', 'item 2', 'slow 3', 'item 4', 'slow 5'];
const slow = (n: number): string[] => Array.from({ length: n }, (_, i) => `${SLOW} ${i}`);
const killing = ['item 0', DEADLY, 'item 2'];

export const longer: Record<string, World> = {
  'long work': {
    before: () => sealed('a', work, { limit: 3, attempts: 3 }),
    requests: [{ id: 'a', payloads: work }],
    lateMs: 240_000,
    enter: (cast) => {
      cast.worker('w1', { concurrency: 3 });
      cast.worker('w2', { concurrency: 1 });
    },
  },
  'long work, read as a whole': {
    before: () => submittedWhole('a', work, { limit: 6, attempts: 3 }),
    requests: [{ id: 'a', payloads: work }],
    lateMs: 240_000,
    enter: (cast) => {
      cast.worker('w1', { concurrency: 6 });
      cast.worker('w2', { concurrency: 6 });
    },
  },
  'long work of two requests': {
    before: async () => {
      await sealed('a', slow(3), { limit: 1 });
      await sealed('b', ['slow bad', 'item', 'slow'], { limit: 2, attempts: 2 });
    },
    requests: [
      { id: 'a', payloads: slow(3) },
      { id: 'b', payloads: ['slow bad', 'item', 'slow'] },
    ],
    lateMs: 240_000,
    enter: (cast) => {
      cast.worker('w1', { concurrency: 1 });
      cast.worker('w2', { concurrency: 2, quantumMs: 0 });
    },
  },
  'long work of one worker': {
    before: () => sealed('a', ['slow bad', 'slow'], { limit: 2, attempts: 4 }),
    requests: [{ id: 'a', payloads: ['slow bad', 'slow'] }],
    lateMs: 240_000,
    enter: (cast) => cast.worker('w1', { concurrency: 2 }),
  },
  'a slot to spare': {
    before: () => sealed('a', slow(6), { limit: 3, maxCrashes: 9 }),
    requests: [{ id: 'a', payloads: slow(6) }],
    lateMs: 300_000,
    enter: (cast) => {
      cast.worker('w1', { concurrency: 5 });
      cast.worker('w2', { concurrency: 2 });
    },
  },
  'long work, cancelled': {
    before: () => sealed('a', work, { limit: 3, attempts: 2 }),
    requests: [{ id: 'a', payloads: work, isCancelled: true }],
    lateMs: 150_000,
    enter: (cast) => {
      cast.leavingWorker('w1');
      cast.worker('w2', { concurrency: 1 });
      cast.canceller('c', 'a');
    },
  },
  'a wide limit': {
    before: () => sealed('a', slow(12), { limit: 5 }),
    requests: [{ id: 'a', payloads: slow(12) }],
    lateMs: 240_000,
    enter: (cast) => {
      cast.worker('w1', { concurrency: 1 });
      cast.leavingWorker('w2', { concurrency: 2 });
    },
  },
  'many turns of two': {
    before: () => sealed('a', slow(10), { limit: 2 }),
    requests: [{ id: 'a', payloads: slow(10) }],
    lateMs: 400_000,
    enter: (cast) => {
      cast.worker('w1', { concurrency: 1 });
      cast.worker('w2', { concurrency: 1 });
    },
  },
  'an id that is retained': {
    before: () => retained('a', 30_000),
    requests: [{ id: 'a', payloads: [], byProducer: true, mayCancel: true, mayGo: true }],
    expires: true,
    enter: (cast) => {
      cast.producer('p', (producer) => producer.submit([], { id: 'a' }));
      cast.worker('w1');
    },
  },
  'a short retention': {
    requests: [{ id: 'a', payloads: [], byProducer: true, mayCancel: true, mayGo: true }],
    expires: true,
    enter: (cast) => {
      cast.producer('p', (producer) => producer.submit([], { id: 'a', retentionMs: 1_000 }));
      cast.worker('w1');
    },
  },
  'two ask for a retained id': {
    before: () => retained('a', 600_000),
    requests: [{ id: 'a', payloads: payloads(2), byProducer: true, mayCancel: true, mayGo: true }],
    enter: (cast) => {
      for (const [name, limit] of [
        ['p', 1],
        ['r', 2],
      ] as const) {
        const { items, options } = submitted('a', payloads(2), { limit });
        cast.producer(name, (producer) => producer.submit([...items], options));
      }
      cast.dropper('d', 'a', () => {});
      cast.worker('w1');
    },
  },
  'one that ends its worker': {
    before: () => sealed('a', killing, { limit: 2, maxCrashes: 2 }),
    requests: [{ id: 'a', payloads: killing }],
    atOnce: false,
    lateMs: 300_000,
    enter: (cast) => {
      cast.worker('w1');
      cast.worker('w2');
    },
  },
  'long work and crashes': {
    before: () => sealed('a', slow(4), { limit: 3, maxCrashes: 2 }),
    requests: [{ id: 'a', payloads: slow(4) }],
    lateMs: 300_000,
    enter: (cast) => {
      cast.worker('w1');
      cast.worker('w2');
    },
  },
  'one that throws at last': {
    before: () => sealed('a', ['slow bad'], { limit: 1, maxCrashes: 2, attempts: 2 }),
    requests: [{ id: 'a', payloads: ['slow bad'] }],
    lateMs: 300_000,
    enter: (cast) => {
      cast.worker('w1', { concurrency: 1 });
      cast.worker('w2', { concurrency: 1 });
    },
  },
  'appended with long pauses': {
    requests: [{ id: 'a', payloads: slow(4), byProducer: true, mayCancel: true }],
    lateMs: 200_000,
    enter: (cast) => {
      cast.producer('p', async (producer) => {
        const request = await producer.open({ id: 'a', limit: 2, producerLeaseMs: 9_000 });
        try {
          for (const item of slow(4)) {
            await request.append(item);
            await request.flush();
            await pause(30_000);
          }
          await request.seal();
          return request;
        } finally {
          request.leave();
        }
      });
      cast.worker('w1', { concurrency: 1 });
    },
  },
  'met by one who does not serve it': {
    before: () => sealed('a', payloads(9, 2), { limit: 5, task: 'census', attempts: 2 }),
    requests: [{ id: 'a', payloads: payloads(9, 2) }],
    atOnce: false,
    withinMs: 2_000,
    enter: (cast) => {
      // In so short a slice none reads the request whole, so that tokens matter.
      cast.worker('w1', { quantumMs: 1 }, 'tax');
      cast.worker('w2', { concurrency: 1, quantumMs: 1 }, 'census');
    },
  },
  'a long one among short ones': {
    before: () => sealed('a', ['slow', 'item', 'item', 'item'], { limit: 3 }),
    requests: [{ id: 'a', payloads: ['slow', 'item', 'item', 'item'] }],
    lateMs: 150_000,
    enter: (cast) => {
      cast.worker('w1', { concurrency: 3 });
      cast.worker('w2', { concurrency: 1 });
    },
  },
};

/** Too large to be played often. */
export const large: Record<string, World> = {
  'one holds many': {
    before: () => sealed('a', payloads(130), { limit: 130, maxCrashes: 9 }),
    requests: [{ id: 'a', payloads: payloads(130) }],
    lateMs: 200_000,
    enter: (cast) => cast.worker('w1', { concurrency: 130 }),
  },
};
