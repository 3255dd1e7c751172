import { playRoles } from './nth-call/loop.js';
import { workersUnderTerms } from './nth-call/terms.js';

playRoles(workersUnderTerms);
