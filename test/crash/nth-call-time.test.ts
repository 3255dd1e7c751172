import { atDeadlines } from './nth-call/deadline.js';
import { playRoles } from './nth-call/loop.js';
import { delayedProducers } from './nth-call/producer.js';

playRoles({ ...atDeadlines, ...delayedProducers });
