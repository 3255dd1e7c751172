import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startRedis } from '@piecework/embedded';
import { makeCertificate, tlsSettings } from './certificate.js';
import { onFreePort } from './on-free-port.js';

/*
 * A server that speaks TLS with a certificate of its own making, as somebody has who is his own
 * authority.
 */

export interface TlsServer extends AsyncDisposable {
  /** Of the port without TLS, for the test to observe. */
  readonly plainUrl: string;
  readonly port: number;
  /** The certificate, which is its own authority: the text, and a file of it. */
  readonly ca: string;
  readonly caFile: string;
  readonly key: string;
}

export async function startTlsServer(): Promise<TlsServer> {
  const folder = await mkdtemp(join(tmpdir(), 'piecework-tls-'));
  const { cert, key, certFile, keyFile } = await makeCertificate(folder);
  const { port, redis } = await onFreePort(async (port) => ({
    port,
    redis: await startRedis({ password: '', args: tlsSettings(port, { certFile, keyFile }) }),
  }));
  return {
    plainUrl: redis.url,
    port,
    ca: cert,
    caFile: certFile,
    key,
    async [Symbol.asyncDispose]() {
      await redis.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
