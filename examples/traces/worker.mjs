// A worker process of traces.mjs: sends its spans to the process that started it.
import { propagation } from '@opentelemetry/api';
import { Worker } from 'piecework';
import { telemetry } from './telemetry.mjs';

const redis = process.env.REDIS_URL;
const [queue] = process.argv.slice(2);
const tenant = () => propagation.getActiveBaggage()?.getEntry('tenant')?.value;
/** Told by the parent: from then on, 'broken' works. */
let isMended = false;
process.on('message', () => {
  isMended = true;
  process.send('mended');
});

/** Returns whose request it is, as the baggage says. */
function handler(kind, { attempt }) {
  if (kind === 'unsteady' && attempt === 1) throw new Error('not at first');
  if (kind === 'broken' && !isMended) throw new TypeError('broken');
  return tenant();
}

const traced = telemetry((span) => process.connected && process.send(span));
const worker = new Worker({ redis, queue, concurrency: 1, handler, telemetry: traced });
await worker.start();
process.send('ready');
process.once('disconnect', () => worker.close());
