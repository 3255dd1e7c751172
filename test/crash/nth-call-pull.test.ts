import { playRoles } from './nth-call/loop.js';
import { pullers } from './nth-call/pull.js';

playRoles(pullers);
