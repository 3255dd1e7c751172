import type { Definition } from './definition.js';
import { queueDefinitions } from './queue-definitions.js';
import { processDefinitions, workerDefinitions } from './worker-definitions.js';

/** All definitions, by who answers with them. */
export const sources: readonly {
  readonly title: string;
  readonly about: string;
  readonly definitions: readonly Definition[];
}[] = [
  {
    title: 'Workers',
    about:
      'From `piecework worker --metrics-port`, `piecework run --metrics-port`, and `WorkerMetrics`. With `--processes` the parent answers with the sum of its processes.',
    definitions: [...Object.values(workerDefinitions), ...Object.values(processDefinitions)],
  },
  {
    title: 'Queues',
    about: 'From `piecework exporter`, the dashboard, and `QueueMetrics`.',
    definitions: Object.values(queueDefinitions),
  },
];
