// Starts a Redis and leaves it: the process ends although the Redis runs, and the Redis ends with the process.
import { startRedis } from '@piecework/embedded';

const { pid } = await startRedis();
console.log(`pid ${pid}`);
