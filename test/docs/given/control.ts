import { pw } from './common.js';

// Nobody serves its task, so it is there to be paused and cancelled.
const open = await pw.submit(['a'], { task: 'nobody' });
export const id = open.id;
export declare const response: Response;
