import { startRedis } from '@piecework/embedded';
import type { RedisProvider } from './provider.js';

/** Processes of this machine. They end with the test worker, also when that is killed. */
export const embedded: RedisProvider = {
  // DEBUG lets tests freeze, age and reload a server; it listens on loopback only. Without a password, as tests also
  // connect by host and port alone: test/flow/other-users.test.ts tests the servers that users start.
  start: (settings = []) =>
    startRedis({ password: '', args: ['--enable-debug-command', 'local', ...settings] }),
};
