import { Redis } from 'ioredis';
import type { Flow } from './flow.js';
import { scriptOf } from './script-names.js';

/** A client on the server of a test that notes the scripts that it sends. It is closed with the test. */
export class NotingRedis extends Redis {
  readonly sent: string[] = [];

  constructor(flow: Flow) {
    super(flow.redis as string, { protocol: 2 });
    flow.after(() => this.disconnect());
  }

  override sendCommand(
    ...[command, stream]: Parameters<Redis['sendCommand']>
  ): ReturnType<Redis['sendCommand']> {
    const script = scriptOf(command.name, command.args);
    if (script) this.sent.push(script);
    return super.sendCommand(command, stream);
  }
}
