import { Redis } from 'ioredis';
import { measureMemory } from './measure-memory.js';
import { measureSpeed } from './measure-speed.js';
import { profileRun } from './profile-run.js';
import type { RunOrder } from './run-order.js';
import { countSentCommands } from './sent-commands.js';
import { Stage } from './stage.js';

/*
 * One run of one contender, in a process of its own: producer and worker side by side, so that this
 * process's CPU time is all that the client side costs.
 */
const MEASUREMENTS = { speed: measureSpeed, memory: measureMemory, profile: profileRun };

// The parent is gone: nothing of this run is wanted any more.
process.on('disconnect', () => process.exit(1));

const order = JSON.parse(process.argv[2] ?? '') as RunOrder;
countSentCommands();
const probe = new Redis({ host: order.host, port: order.port });
const report = await MEASUREMENTS[order.kind](new Stage(order, probe));
process.send?.(report, () => process.exit(0));
