import { Redis } from 'ioredis';
import { measureMemory } from './measure-memory.js';
import { measureSpeed } from './measure-speed.js';
import { profileRun } from './profile-run.js';
import type { RunOrder } from './run-order.js';
import { countSentCommands } from './sent-commands.js';
import { Stage } from './stage.js';

/*
 * One run of one contender, in a process of its own. Producer and worker share it, so its CPU time is the whole cost of
 * the client side.
 */
const MEASUREMENTS = { speed: measureSpeed, memory: measureMemory, profile: profileRun };

// The parent has ended: nobody waits for this run.
process.on('disconnect', () => process.exit(1));

const order = JSON.parse(process.argv[2] ?? '') as RunOrder;
if (!order.echoes) countSentCommands();
const probe = new Redis({ host: order.host, port: order.port });
const report = await MEASUREMENTS[order.kind](new Stage(order, probe));
process.send?.(report, () => process.exit(0));
