import { queueKeys } from '@piecework/protocol';
import type { Figure, Row } from '../figure/figure.js';
import { medianRow } from '../figure/rows.js';
import type { Fixture } from '../fixture/fixture.js';
import { until } from '../fixture/until.js';
import { Command, cpuOfRun } from '../start/command.js';

/** What a command costs before it does anything, and a worker that has nothing to do. */
export const start: Figure = {
  title: 'Start and memory of the command line',
  definition:
    'CPU of the process, user and system, all threads: of `piecework --version`, and of `piecework worker` until its handler runs for the first time. Resident memory of an idle `piecework worker`, and of the parent of `--processes 2`.',
  method:
    'The worker starts when a request waits already; its handler returns `process.cpuUsage()`. Memory: the median of ten samples over ten seconds after the workers have registered. Node alone: `node --eval`.',
  target:
    '`--version` ≤ 150 ms; worker ≤ 250 ms; idle worker ≤ 60 MB; parent of `--processes` ≤ 50 MB',

  async measure(fixture): Promise<Row[]> {
    const rounds = fixture.settings.rounds;
    const samples = {
      node: [] as number[],
      version: [] as number[],
      worker: [] as number[],
      nodeMB: [] as number[],
      idleMB: [] as number[],
      parentMB: [] as number[],
    };
    for (let round = 0; round < rounds; round += 1) {
      samples.node.push(cpuOfRun());
      samples.version.push(cpuOfRun(['--version']));
      samples.worker.push(await untilWork(fixture));
      samples.nodeMB.push(await residentOf(fixture, Command.node()));
      samples.idleMB.push(await idleWorker(fixture, 1));
      samples.parentMB.push(await idleWorker(fixture, 2, '--processes', '2'));
    }
    return [
      medianRow('Node alone', 'ms of CPU', samples.node),
      medianRow('piecework --version', 'ms of CPU', samples.version, { target: { atMost: 150 } }),
      medianRow('piecework worker, until it takes work', 'ms of CPU', samples.worker, {
        target: { atMost: 250 },
      }),
      medianRow('Node alone', 'MB', samples.nodeMB),
      medianRow('piecework worker, idle', 'MB', samples.idleMB, { target: { atMost: 60 } }),
      medianRow('parent of --processes 2', 'MB', samples.parentMB, { target: { atMost: 50 } }),
    ];
  },
};

/** In ms. */
async function untilWork(fixture: Fixture): Promise<number> {
  const queue = fixture.newQueue();
  const request = await fixture.piecework(queue).submit([0]);
  const worker = Command.worker(fixture.url, queue);
  try {
    let micros = Number.NaN;
    for await (const { value } of request.results()) micros = value as number;
    return micros / 1_000;
  } finally {
    await worker.close();
    await fixture.clear();
  }
}

async function idleWorker(fixture: Fixture, workers: number, ...flags: string[]): Promise<number> {
  const queue = fixture.newQueue();
  const command = Command.worker(fixture.url, queue, ...flags);
  const { workers: registry } = queueKeys(queue);
  await until(async () => (await fixture.server.probe.zcard(registry)) === workers);
  return residentOf(fixture, command);
}

async function residentOf(fixture: Fixture, command: Command): Promise<number> {
  try {
    return await command.residentMB(fixture.of(10_000, 5_000, 500));
  } finally {
    await command.close();
  }
}
