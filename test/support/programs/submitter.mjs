// Submits one request. Its only argument is JSON: { redis, queue, options, items, lose }.
//   items: how many numbers from 0 · lose: whether the first reply to each script call gets lost
// Says { ready }, waits for SIGUSR2, and then says { id, total }, or { error, differs }.
import { once } from 'node:events';
import { Producer } from '@piecework/producer';
import { Redis } from 'ioredis';

const { redis, queue, options, items, lose } = JSON.parse(process.argv[2]);

const asked = new Set();
const { sendCommand } = Redis.prototype;
Redis.prototype.sendCommand = function send(command, stream) {
  const reply = sendCommand.call(this, command, stream);
  const text = JSON.stringify(command.args);
  if (!lose || !/^eval(sha)?$/.test(command.name) || asked.has(text)) return reply;
  asked.add(text);
  const lost = () => {
    throw new Error('Connection is closed.');
  };
  return reply.then(lost, lost);
};

const producer = new Producer({ redis, queue });
const told = once(process, 'SIGUSR2');
// Nothing else keeps it alive.
const waiting = setInterval(() => {}, 1_000);
console.log(JSON.stringify({ ready: true }));
await told;
clearInterval(waiting);
const numbers = Array.from({ length: items }, (_, i) => i);
const said = await producer.submit(numbers, options).then(
  ({ id, total }) => ({ id, total }),
  ({ code, differs }) => ({ error: code, differs }),
);
console.log(JSON.stringify(said));
await producer.close();
