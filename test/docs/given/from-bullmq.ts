import { type ConnectionOptions, type Queue, type QueueEvents, Worker } from 'bullmq';

export class BullWorker extends Worker {}
export { FlowProducer } from 'bullmq';
export declare const connection: ConnectionOptions;
export declare const queue: Queue;
export declare const queueEvents: QueueEvents;
export const resize = async (path: string): Promise<string> => path;
export const paths = ['a.jpg', 'b.jpg'];
