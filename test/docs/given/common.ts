/*
 * What the examples of README and docs use without declaring it: test/docs/examples.test.ts imports from here, and
 * from the file of the page beside it, each name that an example uses and does not declare itself.
 */
import { defineTask, type HandlerContext, Piecework, type RequestHandle, Worker } from 'piecework';

export const redis = process.env['REDIS_URL'] as string;
export const pw = new Piecework({ redis });
export const items = ['a', 'b', 'c'];
export const handler = async (payload: unknown): Promise<unknown> => payload;

const worker = new Worker({ redis, handlers: [defineTask('given').handler(handler)] });
await worker.start();

const submitted = await pw.submit(items, { task: 'given' });
await submitted.completion();
export const id = submitted.id;
export const request: RequestHandle = pw.request(id);
export const signal = new AbortController().signal;

/** Of a handler: examples that use it are compiled and not run. */
export declare const ctx: HandlerContext;

/** Of an application that signs its users in. */
export declare const userOf: (
  request: unknown,
) => Promise<{ name: string; isOperator: boolean } | undefined>;

/** Ends what was opened here, so that the process can end. */
export async function close(): Promise<void> {
  await worker.close({ timeoutMs: 0 });
  await pw.close();
}
