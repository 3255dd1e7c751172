// Lets this process meet its fate at its n-th command to Redis, on whichever connection of its main
// thread: 'before' it is sent or 'after' it was answered. SIGKILL ends it there, SIGSTOP freezes it,
// with all its threads; it says { met: n, command, sha } first. With a `sha` only that script counts.
import { writeSync } from 'node:fs';
import { Redis } from 'ioredis';

/** How ioredis makes itself known, and what it asks each server of a cluster, of which there are six. */
function isIoredis({ name, args }, cluster) {
  if (name === 'client') return args[0] === 'SETINFO';
  return cluster && /^(readonly|info|cluster)$/.test(name);
}

/** fate: { signal, at, when, sha }; cluster: whether it goes to one */
export function meetFate({ signal, at, when, sha: only }, cluster) {
  const { sendCommand } = Redis.prototype;
  let sent = 0;
  const meet = (n, command) => {
    // Synchronous: nothing that is buffered outlives the signal.
    // A long call has a Buffer there.
    const sha = command.name === 'evalsha' ? String(command.args[0]) : undefined;
    writeSync(1, `${JSON.stringify({ met: n, command: command.name, sha })}\n`);
    process.kill(process.pid, signal);
  };
  const counted = new WeakSet();
  Redis.prototype.sendCommand = function send(command, stream) {
    // What waits for its connection passes here twice; what ioredis says of itself is not ours.
    if (isIoredis(command, cluster) || counted.has(command))
      return sendCommand.call(this, command, stream);
    counted.add(command);
    if (only && String(command.args[0]) !== only) return sendCommand.call(this, command, stream);
    sent += 1;
    const n = sent;
    if (n === at && when === 'before') meet(n, command);
    // First to hear of the answer: whoever sent the command has not seen it yet.
    if (n === at && when === 'after') {
      command.promise.then(
        () => meet(n, command),
        () => meet(n, command),
      );
    }
    return sendCommand.call(this, command, stream);
  };
}
