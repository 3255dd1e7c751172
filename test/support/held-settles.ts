import { type Command, Redis } from 'ioredis';
import { buildScripts } from '../../scripts/lua-source.mjs';
import type { Flow } from './flow.js';

const shas = new Set(
  (['server', 'test'] as const).map((clock) => buildScripts({ clock }).settle.sha),
);

/** A client whose settles can be kept from being sent. */
export class HeldSettles extends Redis {
  held: Promise<unknown> | undefined;
  waiting = 0;

  override sendCommand(command: Command, stream?: never): unknown {
    const send = () => super.sendCommand(command, stream);
    if (!this.held || !shas.has(String(command.args[0]))) return send();
    this.waiting += 1;
    return this.held.then(send);
  }
}

export function holdable(flow: Flow): HeldSettles {
  if (typeof flow.redis !== 'string') throw new Error('needs one server');
  const client = new HeldSettles(flow.redis, { lazyConnect: true, protocol: 2 });
  flow.after(() => client.disconnect());
  return client;
}
