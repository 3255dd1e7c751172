// Starts an embedded Redis, says where, and lives on until somebody ends it.
import { startRedis } from '@piecework/embedded';

const { url, pid, dir } = await startRedis();
console.log(JSON.stringify({ url, pid, dir }));
setInterval(() => {}, 60_000);
