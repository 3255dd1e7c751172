import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';

export interface WaitForAnswerOptions {
  host: string;
  port: number;
  /** `''`: none. */
  password: string;
  /** Whether our server has the port: before that, another user's program may have it, and must not get the password. */
  hasPort(): boolean | Promise<boolean>;
  /**
   * Whether this is our server, by its `INFO server`: another server may have taken the port a moment before ours
   * tried to.
   */
  isOurs(info: string): boolean | Promise<boolean>;
  /** Ends the wait. */
  signal: AbortSignal;
  /** Default 60 seconds: a large append-only file takes long to load. */
  timeoutMs?: number;
}

/** Waits until the server at this port is ready; `silent` when that takes too long, or on abort. */
export async function waitForAnswer(options: WaitForAnswerOptions): Promise<'answered' | 'silent'> {
  const { signal, timeoutMs = 60_000 } = options;
  const deadlineMs = performance.now() + timeoutMs;
  while (!signal.aborted && performance.now() < deadlineMs) {
    if ((await options.hasPort()) && (await answers(options))) return 'answered';
    await sleep(15);
  }
  return 'silent';
}

async function answers({ host, port, password, isOurs }: WaitForAnswerOptions): Promise<boolean> {
  const client = new Redis({
    host,
    port,
    password,
    lazyConnect: true,
    enableReadyCheck: false,
    retryStrategy: () => null,
    connectTimeout: 1000,
    commandTimeout: 2000,
    // After a refused connection, the client keeps the process running for this time.
    disconnectTimeout: 50,
  });
  client.on('error', () => {});
  try {
    await client.connect();
    // A server that still loads its data answers with an error.
    await client.ping();
    return await isOurs(await client.info('server'));
  } catch {
    return false;
  } finally {
    client.disconnect();
  }
}
