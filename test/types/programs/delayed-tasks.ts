import { DelayedTasks, type TaskFunction, type TaskWorkerOptions } from 'piecework';

/* Without a type, tasks of any names and arguments go in. */
const redis = 'redis://localhost';
const any = new DelayedTasks({ redis });
await any.executeLater('mail', 'welcome');
await any.executeLater('mail', 'welcome', ['ann@example.org', 5], { delayMs: 5 });
// @ts-expect-error the arguments are an array
await any.executeLater('mail', 'welcome', 'ann@example.org');
any.worker({ queues: ['mail'], handlers: { welcome: async ([address]: [string]) => address } });
const plain: TaskFunction = async ([address], { attempt }) => [address, attempt];
const options: TaskWorkerOptions = { queues: ['mail'], handlers: { welcome: plain } };
any.worker(options);

/* With one, names and arguments are checked, where a task is put in and where it is run. */
interface Tasks {
  welcome: [address: string, language?: string];
  sweep: [];
}
const tasks = new DelayedTasks<Tasks>({ redis });
const id: string = await tasks.executeLater('mail', 'welcome', ['ann@example.org']);
await tasks.executeLater('mail', 'sweep');
await tasks.executeLater('mail', 'sweep', [], { delayMs: 5 });
// @ts-expect-error nothing runs tasks of this name
await tasks.executeLater('mail', 'nosuch', ['ann@example.org']);
// @ts-expect-error an address is missing
await tasks.executeLater('mail', 'welcome');
// @ts-expect-error an address is a text
await tasks.executeLater('mail', 'welcome', [5]);
tasks.worker({
  queues: ['mail'],
  handlers: {
    welcome: async ([address, language], { signal }) => [address.length, language, signal, id],
  },
});
// @ts-expect-error no task has this name
tasks.worker({ queues: ['mail'], handlers: { nosuch: async () => 1 } });
// @ts-expect-error the argument is a text
tasks.worker({ queues: ['mail'], handlers: { welcome: async ([address]: [number]) => address } });
