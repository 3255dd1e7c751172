import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import { Piecework } from 'piecework';

/** A web server of examples/, as its clients see it. */
export interface Recipe {
  fetch(path: string, init?: RequestInit): Promise<Response>;
  close(): Promise<void>;
}

interface Made {
  readonly name: string;
  /** Starts it on a Redis. */
  open(redis: string): Promise<Recipe>;
}

/** A module of examples/, which are JavaScript and have no types. */
export const fromExamples = <Module>(path: string): Promise<Module> =>
  import(new URL(`../../examples/${path}`, import.meta.url).href) as Promise<Module>;

function served(server: Server, close: () => Promise<unknown>): Recipe {
  const { port } = server.address() as AddressInfo;
  return {
    fetch: (path, init) => fetch(`http://127.0.0.1:${port}${path}`, init),
    close: async () => {
      await close();
    },
  };
}

const express: Made = {
  name: 'Express',
  open: async (redis) => {
    const { createApp } = await fromExamples<{
      createApp: (pw: Piecework) => { listen: (port: number, host: string) => Server };
    }>('express/app.mjs');
    const pw = new Piecework({ redis });
    const server = createApp(pw).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    return served(server, async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
      await pw.close();
    });
  },
};

const fastify: Made = {
  name: 'Fastify',
  open: async (redis) => {
    const { pieceworkPlugin } = await fromExamples<{
      pieceworkPlugin: (app: object, options: { redis: string }) => Promise<void>;
    }>('fastify/piecework-plugin.mjs');
    const app = Fastify({ forceCloseConnections: true });
    await app.register(pieceworkPlugin, { redis });
    await app.listen({ port: 0, host: '127.0.0.1' });
    return served(app.server, () => app.close());
  },
};

type RouteHandler = (
  request: Request,
  context: { params: Promise<{ id: string }> },
) => Promise<Response>;

/** The route handlers, called as Next.js does, with the Web's Request: next itself takes 150 MB and a build. */
const nextjs: Made = {
  name: 'Next.js',
  open: async (redis) => {
    const pw = new Piecework({ redis });
    const handlers = async (path: string) =>
      fromExamples<{ GET: RouteHandler; POST: RouteHandler }>(`nextjs/app/${path}/route.mjs`);
    const all = {
      requests: await handlers('requests'),
      status: await handlers('requests/[id]'),
      events: await handlers('requests/[id]/events'),
      results: await handlers('requests/[id]/results'),
    };
    return {
      fetch: (path, init) => {
        // What examples/nextjs/lib/piecework.mjs would make of REDIS_URL.
        Object.assign(globalThis, { piecework: pw });
        const [, , id = '', what = 'status'] = path.split('/');
        const handle = id === '' ? all.requests.POST : all[what as 'status'].GET;
        const request = new Request(`http://localhost${path}`, init);
        return handle(request, { params: Promise.resolve({ id }) });
      },
      close: async () => {
        await pw.close();
        Object.assign(globalThis, { piecework: undefined });
      },
    };
  },
};

export const recipes: readonly Made[] = [express, fastify, nextjs];
