// How each alert is made to fire, and to clear.

/**
 * The rules as they are shipped, with shorter times: so that a fleet reaches in seconds what should take it minutes. Each
 * change has to be found.
 */
export function shortened(rules) {
  let text = rules.replaceAll(/for: \d+[mh]\b/g, 'for: 1s').replaceAll(/\[\d+m\]/g, '[15s]');
  for (const [from, to] of [
    ['piecework_queue_oldest_waiting_seconds > 900', 'piecework_queue_oldest_waiting_seconds > 3'],
    ['(piecework_queue_slots > 0) > 3600', '(piecework_queue_slots > 0) > 5'],
    ['_bucket[15s]))) > 1', '_bucket[15s]))) > 0.2'],
  ]) {
    if (!text.includes(from)) throw new Error(`alerts.yml has no ${from}`);
    text = text.replace(from, to);
  }
  return text;
}

/**
 * By the name of an alert: the queue that it is about, what makes it fire, and what clears it. `again`: done each second
 * until it fires.
 */
export function scenarios({ submit, pw, worker, redisB, startAway, cli }) {
  const cancels = (queue, id) => () => pw(queue).request(id).cancel();
  return {
    PieceworkQueueUnreadable: { queue: 'away', fire: async () => {}, clear: startAway },
    PieceworkNoWorkers: {
      queue: 'empty',
      fire: () => submit('empty', 'none', [{}, {}]),
      clear: () => worker('empty'),
    },
    PieceworkWaitsTooLong: {
      queue: 'waits',
      fire: () => submit('waits', 'long', [{}, {}]),
      clear: () => worker('waits'),
    },
    PieceworkBacklogGrows: {
      queue: 'grows',
      fire: () => worker('grows', '--concurrency', '1'),
      again: (n) =>
        submit(
          'grows',
          `more-${n}`,
          Array.from({ length: 20 }, () => ({ ms: 500 })),
        ),
      clear: async () => {
        for await (const { id } of pw('grows').admin.list()) await pw('grows').admin.cancel(id);
      },
    },
    PieceworkNoWorkerForTask: {
      queue: 'main',
      fire: () => submit('main', 'unserved', [{}], { task: 'unknown' }),
      clear: cancels('main', 'unserved'),
    },
    PieceworkFailures: {
      queue: 'main',
      fire: async () => {},
      again: (n) =>
        submit(
          'main',
          `fails-${n}`,
          Array.from({ length: 20 }, () => ({ fail: true })),
        ),
      clear: async () => {},
    },
    PieceworkLeasesLost: {
      queue: 'leases',
      fire: async () => {
        await worker('leases', '--lease-ms', '1000', '--max-block-ms', '0');
        await submit('leases', 'warm', [{}]);
      },
      again: (n) => submit('leases', `blocks-${n}`, [{ block: 2_500 }]),
      clear: async () => {},
    },
    PieceworkCallsStall: {
      queue: 'frozen',
      fire: async () => {
        await submit(
          'frozen',
          'in-flight',
          Array.from({ length: 40 }, () => ({ ms: 300 })),
        );
        await redisB.kill('SIGSTOP');
      },
      clear: () => redisB.kill('SIGCONT'),
    },
    PieceworkSettlesSlow: {
      queue: 'slow',
      fire: async () => {},
      again: async (n) => {
        await submit('slow', `slow-${n}`, [{ ms: 300 }]);
        await cli.freeze('slow', 900);
      },
      clear: async () => {},
    },
    PieceworkSlotsStuck: {
      queue: 'stuck',
      fire: async () => {
        await worker('stuck', '--slow-ms', '300');
        await submit('stuck', 'ignores', [{ ms: 15_000, ignore: true }], { attemptTimeoutMs: 200 });
      },
      // The handler ends.
      clear: async () => {},
    },
    PieceworkWorkersSilent: {
      queue: 'silent',
      fire: async () => {
        const silent = await worker('silent');
        // It listens before it is registered.
        await cli.registered('silent');
        silent.kill('SIGSTOP');
        cli.silent = silent;
      },
      clear: () => cli.silent.kill('SIGCONT'),
    },
    PieceworkWorkersNotReady: {
      queue: 'drains',
      fire: async () => {
        const drains = await worker('drains');
        await submit('drains', 'ends-late', [{ ms: 12_000, ignore: true }]);
        await cli.running('drains');
        drains.kill('SIGTERM');
      },
      // The handler ends, and the process with it.
      clear: async () => {},
    },
    PieceworkQueuePaused: {
      queue: 'main',
      fire: () => pw('main').admin.pauseQueue(),
      clear: () => pw('main').admin.resumeQueue(),
    },
  };
}
