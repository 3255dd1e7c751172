// Serves the plugin, and ends in order.
//
//   REDIS_URL=redis://localhost:6379 PORT=3000 node examples/fastify/server.mjs
import Fastify from 'fastify';
import { pieceworkPlugin } from './piecework-plugin.mjs';

// Open streams would keep the server open until their requests are complete.
const fastify = Fastify({ logger: true, forceCloseConnections: true });
await fastify.register(pieceworkPlugin, {
  redis: process.env.REDIS_URL ?? 'redis://localhost:6379',
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => fastify.close());
await fastify.listen({ port: Number(process.env.PORT ?? 3000) });
