import { idQueues } from './nth-call/id-queue.js';
import { playRoles } from './nth-call/loop.js';

playRoles(idQueues);
