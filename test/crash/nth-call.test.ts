import { playRoles } from './nth-call/loop.js';
import { notifiers } from './nth-call/notifier.js';
import { producers } from './nth-call/producer.js';
import { tickers } from './nth-call/tick.js';
import { workers } from './nth-call/worker.js';

playRoles({ ...producers, ...workers, ...notifiers, ...tickers });
