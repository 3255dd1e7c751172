// Submits requests, all at once. Its only argument is JSON: { redis, queue, submissions, lose }.
//   submissions: { options, items }, items: how many numbers from 0
//   lose: whether the first reply to each write gets lost
// Says { ready }, waits for SIGUSR2, and then says for each { id, generation, total, created }, or { error, differs }.
import { once } from 'node:events';
import { Producer } from '@piecework/producer';
import { Redis } from 'ioredis';

const { redis, queue, submissions, lose } = JSON.parse(process.argv[2]);

/** The server has carried it out, and the caller hears that the connection broke. */
async function withoutFirstReply(what, reply) {
  const text = JSON.stringify(what);
  const again = asked.has(text);
  asked.add(text);
  if (again) return reply;
  await reply.catch(() => {});
  lost += 1;
  throw new Error('Connection is closed.');
}

const asked = new Set();
let lost = 0;
if (lose) {
  const { sendCommand } = Redis.prototype;
  Redis.prototype.sendCommand = function send(command, stream) {
    const reply = sendCommand.call(this, command, stream);
    if (stream || !/^(eval|evalsha|set)$/.test(command.name)) return reply;
    return withoutFirstReply([command.name, ...command.args], reply);
  };
}

const producer = new Producer({ redis, queue });
const told = once(process, 'SIGUSR2');
// Nothing else keeps it alive.
const waiting = setInterval(() => {}, 1_000);
console.log(JSON.stringify({ ready: true }));
await told;
clearInterval(waiting);
const said = await Promise.all(
  submissions.map(({ options, items }) =>
    producer.submit(
      Array.from({ length: items }, (_, i) => i),
      options,
    ),
  ),
).catch(({ code, message, differs }) => ({ error: code, message, differs }));
console.log(JSON.stringify({ said, lost }));
await producer.close();
