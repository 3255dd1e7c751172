// Serves the plugin, and ends in order.
//
//   REDIS_URL=redis://localhost:6379 PORT=3000 node examples/fastify/server.mjs
import Fastify from 'fastify';
import { pieceworkPlugin } from './piecework-plugin.mjs';

/** The log on a terminal: what goes wrong, in words. */
const words = {
  write(line) {
    const { msg, err } = JSON.parse(line);
    console.error(err?.stack ?? msg);
  },
};
const fastify = Fastify({
  // Programs read JSON.
  logger: process.stdout.isTTY ? { level: 'warn', stream: words } : true,
  // Clients that keep their connection would keep the server open.
  forceCloseConnections: true,
});
await fastify.register(pieceworkPlugin, {
  redis: process.env.REDIS_URL ?? 'redis://localhost:6379',
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => fastify.close());
try {
  console.error(await fastify.listen({ port: Number(process.env.PORT ?? 3000) }));
} catch (error) {
  console.error(`server: ${error.message}\nSet PORT to another port.`);
  process.exitCode = 1;
  await fastify.close();
}
