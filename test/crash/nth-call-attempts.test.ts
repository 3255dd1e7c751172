import { playRoles } from './nth-call/loop.js';
import { workersOfAttempts } from './nth-call/terms.js';

playRoles(workersOfAttempts);
