// The independent walk: the same totals by other means. Plain file reads, one after the other, with
// no queue, no workers and none of the handler's code.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Files, bytes, lines and the sum of all SHA-256 modulo 2^256 below `folder`. */
export function walk(folder) {
  const totals = { files: 0, bytes: 0, lines: 0, digest: 0n };
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    const content = readFileSync(join(entry.parentPath ?? entry.path, entry.name));
    totals.files += 1;
    totals.bytes += content.length;
    totals.lines += content.toString('latin1').split('\n').length - 1;
    totals.digest = addDigest(totals.digest, createHash('sha256').update(content).digest('hex'));
  }
  return totals;
}

export const addDigest = (sum, hex) => (sum + BigInt(`0x${hex}`)) % 2n ** 256n;
