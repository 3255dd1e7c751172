import { playRoles } from './nth-call/loop.js';
import { operators } from './nth-call/operator.js';

playRoles(operators);
