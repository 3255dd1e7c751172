// Serves the dashboard for dashboard-time.mjs, and measures its answers: node dashboard-server.mjs URL
import { dashboard } from '@piecework/dashboard';
import { fastify } from 'fastify';

const [, , redis] = process.argv;
const cpuMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

/** The answer that is measured: when and at what CPU time its question came, and its first view was written. */
let next;
let taken;

const app = fastify({ forceCloseConnections: true });
app.server.prependListener('request', (_, response) => {
  if (!next) return;
  const begun = { at: performance.now(), cpuMs: cpuMs() };
  next = undefined;
  const note = () => {
    taken?.({ ms: performance.now() - begun.at, cpuMs: cpuMs() - begun.cpuMs });
    taken = undefined;
  };
  const { write } = response;
  response.write = function (text, ...more) {
    const written = write.call(this, text, ...more);
    if (String(text).startsWith('event: view')) note();
    return written;
  };
  response.once('finish', note);
});
await app.register(dashboard, { redis, insecure: true });
const url = await app.listen({ port: 0, host: '127.0.0.1' });

async function lateTimers() {
  const lateMs = [];
  for (let i = 0; i < 200; i++) {
    const at = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 1));
    lateMs.push(performance.now() - at - 1);
  }
  return { lateMs };
}

let measured;
process.on('message', async (asked) => {
  if (asked === 'end') {
    await app.close();
    process.disconnect();
    return;
  }
  const { measure } = asked;
  if (measure === 'answer') {
    next = true;
    measured = new Promise((resolve) => {
      taken = resolve;
    });
    process.send({});
  } else if (measure === 'taken') process.send(await measured);
  else if (measure === 'timers') process.send(await lateTimers());
  else process.send({ cpuMs: cpuMs() });
});
process.send({ port: Number(new URL(url).port) });
