import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';

export interface WaitForAnswerOptions {
  host: string;
  port: number;
  /**
   * Whether it is the server that is meant, by its `INFO server`: somebody else's may have taken
   * the port a moment before ours tried to.
   */
  isOurs(info: string): boolean | Promise<boolean>;
  /** Stops the waiting. */
  signal: AbortSignal;
  /** Default 60 seconds: a large append-only file takes its time to load. */
  timeoutMs?: number;
}

/** Waits until the server at this port is ready; `silent` when it is not in time, or on abort. */
export async function waitForAnswer(options: WaitForAnswerOptions): Promise<'answered' | 'silent'> {
  const { signal, timeoutMs = 60_000 } = options;
  const deadlineMs = performance.now() + timeoutMs;
  while (!signal.aborted && performance.now() < deadlineMs) {
    if (await answers(options)) return 'answered';
    await sleep(15);
  }
  return 'silent';
}

async function answers({ host, port, isOurs }: WaitForAnswerOptions): Promise<boolean> {
  const client = new Redis({
    host,
    port,
    lazyConnect: true,
    enableReadyCheck: false,
    retryStrategy: () => null,
    connectTimeout: 1000,
    commandTimeout: 2000,
    // After a refused connection the client holds a timer of this length, and with it the process.
    disconnectTimeout: 50,
  });
  client.on('error', () => {});
  try {
    await client.connect();
    // While it loads its data, this is refused with an error.
    await client.ping();
    return await isOurs(await client.info('server'));
  } catch {
    return false;
  } finally {
    client.disconnect();
  }
}
