// Serves app.mjs, and ends in order.
//
//   REDIS_URL=redis://localhost:6379 PORT=3000 node examples/express/server.mjs
import { Piecework } from 'piecework';
import { createApp } from './app.mjs';

const pw = new Piecework({ redis: process.env.REDIS_URL ?? 'redis://localhost:6379' });
const server = createApp(pw).listen(Number(process.env.PORT ?? 3000), (error) => {
  if (error) throw error;
  console.error(`http://localhost:${server.address().port}`);
});

async function stop() {
  const closed = new Promise((resolve) => server.close(resolve));
  // Open streams would keep the server open until their requests are complete.
  setTimeout(() => server.closeAllConnections(), 5_000).unref();
  await closed;
  await pw.close();
}
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, stop);
