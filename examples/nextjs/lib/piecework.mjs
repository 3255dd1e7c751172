// One Piecework for each server process. `next dev` loads modules again after each change: the global keeps the one
// that is connected.
import { Piecework } from 'piecework';

export function piecework() {
  globalThis.piecework ??= new Piecework({
    redis: process.env.REDIS_URL ?? 'redis://localhost:6379',
  });
  return globalThis.piecework;
}
