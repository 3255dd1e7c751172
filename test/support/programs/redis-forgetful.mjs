// Starts an embedded Redis, says where, and never stops it: the process has to end all the same.
import { startRedis } from '@piecework/embedded';

const { url, pid, dir } = await startRedis();
console.log(JSON.stringify({ url, pid, dir }));
