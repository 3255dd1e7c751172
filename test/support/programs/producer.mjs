// A producer process. Its only argument is JSON: { redis, queue, request, items, end }.
//   items: numbers [from, to) to append, one call each
//   end: 'flush' leaves the request open, 'seal' seals it, 'hold' stays on without doing more
// Says { appended } when all are in.
import { Producer } from '@piecework/producer';

const { redis, queue, request, items, end } = JSON.parse(process.argv[2]);
const producer = new Producer({ redis, queue });
const open = await producer.open(request);
for (let i = items[0]; i < items[1]; i += 1) await open.append(i);
await open.flush();
console.log(JSON.stringify({ appended: open.appended }));
if (end === 'seal') await open.seal();
if (end !== 'hold') await producer.close();
