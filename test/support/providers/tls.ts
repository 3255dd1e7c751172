import { Redis } from 'ioredis';
import { certificateFiles, tlsSettings } from '../certificate.js';
import { onFreePort } from '../on-free-port.js';
import { embedded } from './embedded.js';
import type { RedisProvider } from './provider.js';

/** Processes of this machine that speak TLS and nothing else, with the certificate of the run. */
export const tls: RedisProvider = {
  async start(settings = []) {
    const folder = process.env['PIECEWORK_TEST_CERTIFICATE'];
    if (!folder) throw new Error('a run over TLS has no certificate');
    const { port, server } = await onFreePort(async (port) => ({
      port,
      server: await embedded.start([...tlsSettings(port, certificateFiles(folder)), ...settings]),
    }));
    // Whether it answers was asked without; from here on that is over.
    const client = new Redis(server.url);
    await client.config('SET', 'port', '0');
    client.disconnect();
    return { ...server, url: `rediss://127.0.0.1:${port}` };
  },
};
