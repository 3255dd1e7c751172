// Serves app.mjs, and ends in order.
//
//   REDIS_URL=redis://localhost:6379 PORT=3000 node examples/express/server.mjs
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Piecework } from 'piecework';
import { createApp } from './app.mjs';

const pw = new Piecework({ redis: process.env.REDIS_URL ?? 'redis://localhost:6379' });
const closing = new AbortController();
const server = createServer(createApp(pw, closing.signal));
try {
  server.listen(Number(process.env.PORT ?? 3000));
  await once(server, 'listening');
  console.error(`http://localhost:${server.address().port}`);
} catch (error) {
  console.error(`server: ${error.message}\nSet PORT to another port.`);
  process.exitCode = 1;
  await pw.close();
}

async function stop() {
  closing.abort();
  const closed = new Promise((resolve) => server.close(resolve));
  // For clients that do not read to the end.
  setTimeout(() => server.closeAllConnections(), 5_000).unref();
  await closed;
  await pw.close();
}
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, stop);
