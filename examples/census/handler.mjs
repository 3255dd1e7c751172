// Counts one file: its bytes, its lines, its size under gzip and its SHA-256. Streams, so that a
// file of any size costs little memory.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';

const NEWLINE = 10;

/** @param {string} path @param {import('piecework').HandlerContext} context */
export default async function census(path, { signal }) {
  const hash = createHash('sha256');
  let bytes = 0;
  let lines = 0;
  let gzipBytes = 0;
  await pipeline(
    createReadStream(path, { signal }),
    async function* count(chunks) {
      for await (const chunk of chunks) {
        bytes += chunk.length;
        for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1))
          lines += 1;
        hash.update(chunk);
        yield chunk;
      }
    },
    createGzip(),
    async (packed) => {
      for await (const chunk of packed) gzipBytes += chunk.length;
    },
  );
  return { path, bytes, lines, gzipBytes, sha256: hash.digest('hex') };
}
