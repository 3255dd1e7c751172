import { playRoles } from './nth-call/loop.js';
import { consumed, put, scheduled, woken } from './nth-call/timed.js';

playRoles({
  'consumer of a retry queue': consumed,
  'taker of a scheduler': (stage) => scheduled(stage, false),
  'stream of a scheduler': (stage) => scheduled(stage, true),
  'taker that waits to be woken': woken,
  'producer of a retry queue': put,
});
