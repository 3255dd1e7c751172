import { type Handler, type TaskFunction, Worker } from 'piecework';

/* What a handler of all tasks is given was checked by nobody: it may be used as the program knows it. */
const redis = 'redis://localhost';
new Worker({ redis, handler: async (payload) => payload.path.length });
new Worker({ redis, handler: async ({ path }, context) => [path, context.index] });
new Worker({ redis, handler: (payload: { path: string }) => payload.path });
new Worker({ redis, handler: async (payload: unknown) => String(payload) });

const plain: Handler = async (payload) => payload.path;
const typed: Handler<{ path: string }, number> = ({ path }) => path.length;
new Worker({ redis, handler: plain });
new Worker({ redis, handler: typed });
const later: TaskFunction = async (payload) => payload.path;
// @ts-expect-error the context has no such word
new Worker({ redis, handler: async (_payload, context) => [context.jobId, later] });
// @ts-expect-error a type that is given holds
const wrong: Handler<{ path: string }> = (payload) => payload.paths;
new Worker({ redis, handler: wrong });
