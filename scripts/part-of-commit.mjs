// Prints which of N parts the current commit chooses, from 0. Without git it is the first.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';

const parts = Number(process.argv[2]);
let commit = '';
try {
  commit = execFileSync('git', ['rev-parse', 'HEAD'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
} catch {}
const chosen = createHash('sha256').update(commit.trim()).digest().readUInt32BE() % parts;
console.log(commit === '' ? 0 : chosen);
