import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { generate } from 'selfsigned';

/** A certificate that is its own authority, for a server on this machine and for its clients. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** Where it is in a folder. */
export const certificateFiles = (folder: string) => ({
  certFile: join(folder, 'server.crt'),
  keyFile: join(folder, 'server.key'),
});

/** Settings of a server that has it, and speaks TLS at this port. */
export const tlsSettings = (
  port: number,
  { certFile, keyFile }: Record<'certFile' | 'keyFile', string>,
) => [
  ...['--tls-port', String(port), '--tls-auth-clients', 'no'],
  ...['--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', certFile],
];

/** Makes one, and writes it into a folder: servers read files. */
export async function makeCertificate(folder: string): Promise<Certificate> {
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'piecework test' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [
      { name: 'basicConstraints', cA: true },
      {
        name: 'subjectAltName',
        altNames: [
          { type: 2, value: 'localhost' },
          { type: 7, ip: '127.0.0.1' },
        ],
      },
    ],
  });
  const { certFile, keyFile } = certificateFiles(folder);
  await writeFile(certFile, cert);
  await writeFile(keyFile, key);
  return { cert, key, certFile, keyFile };
}
