import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCertificate } from './certificate.js';

/*
 * Of a run over TLS: one certificate for all servers, and one authority that every process believes
 * from its start on, as the environment tells it. So it is made before there is any.
 */

export default async function setup(): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'piecework-authority-'));
  const { certFile } = await makeCertificate(folder);
  process.env['PIECEWORK_TEST_CERTIFICATE'] = folder;
  process.env['NODE_EXTRA_CA_CERTS'] = certFile;
  return () => rm(folder, { recursive: true, force: true });
}
