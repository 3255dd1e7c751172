import { defineTask, Worker } from 'piecework';
import { pw, redis } from './common.js';

export { z } from 'zod';
export const resize = defineTask<{ path: string; width?: number }, { bytes: number }>('resize');
const resizing = resize.handler(async ({ path }) => ({ bytes: path.length }));
await new Worker({ redis, handlers: [resizing] }).start();
export const request = await pw.submit([{ path: 'a.jpg' }], { task: resize });
await request.completion();
