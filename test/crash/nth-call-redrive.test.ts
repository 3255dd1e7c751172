import { playRoles } from './nth-call/loop.js';
import { redrivers } from './nth-call/redrive.js';

playRoles(redrivers);
