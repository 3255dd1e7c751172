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

const HERE = [
  { type: 2, value: 'localhost' },
  { type: 7, ip: '127.0.0.1' },
] as const;

/** Makes one, and writes it into a folder: servers read files. `names`: the host names that it has; no address then. */
export async function makeCertificate(
  folder: string,
  names?: readonly string[],
): Promise<Certificate> {
  const altNames = names?.map((value) => ({ type: 2 as const, value })) ?? [...HERE];
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'piecework test' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [
      { name: 'basicConstraints', cA: true },
      {
        name: 'subjectAltName',
        altNames,
      },
    ],
  });
  const { certFile, keyFile } = certificateFiles(folder);
  await writeFile(certFile, cert);
  await writeFile(keyFile, key);
  return { cert, key, certFile, keyFile };
}
