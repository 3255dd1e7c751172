// Another user, who looks for secrets: at ports, at processes, and in files. Prints what it found.
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';

const { ports, secrets, folder, isOther } = JSON.parse(process.env.SPY);
/** Larger files are none of the product's own in these tests. */
const LARGEST_BYTES = 10_000_000;

function attempt(read) {
  try {
    return read();
  } catch {
    // It has gone, or this user may not read it.
    return undefined;
  }
}

async function replyOf(port) {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write('KEYS *\r\n');
  const [bytes] = await once(socket, 'data');
  socket.destroy();
  return String(bytes).split('\r\n', 1)[0];
}

function* filesIn(path) {
  for (const entry of attempt(() => readdirSync(path, { withFileTypes: true })) ?? []) {
    const inner = join(path, entry.name);
    if (entry.isDirectory()) yield* filesIn(inner);
    else if (entry.isFile() && (attempt(() => statSync(inner))?.size ?? 0) < LARGEST_BYTES)
      yield inner;
  }
}

function* places() {
  for (const pid of attempt(() => readdirSync('/proc')) ?? []) {
    if (!/^\d+$/.test(pid) || pid === String(process.pid)) continue;
    yield `/proc/${pid}/cmdline`;
    if (isOther) yield `/proc/${pid}/environ`;
  }
  // The owner may read its own.
  if (isOther) yield* filesIn(folder);
}

const holds = (path) => {
  const bytes = attempt(() => readFileSync(path));
  return bytes !== undefined && secrets.some((secret) => bytes.includes(secret));
};
const replies = {};
for (const port of ports) replies[port] = await replyOf(port);
const leaks = [...places()].filter(holds);
process.stdout.write(JSON.stringify({ replies, leaks }));
