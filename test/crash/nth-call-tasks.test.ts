import { playRoles } from './nth-call/loop.js';
import { DELAY_MS, movedAndRun, putIn } from './nth-call/tasks.js';

playRoles({
  'a delayed task is put in in one call, asked again': putIn({ delayMs: DELAY_MS }),
  'an undelayed task is put in in one call, asked again': putIn({}),
  'delayed tasks of two queues are moved and run': movedAndRun,
});
