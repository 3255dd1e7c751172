import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { InvalidOptionError } from '@piecework/protocol';
import type { BackoffFunction, Handler, TaskHandler } from '@piecework/worker';

/** What a handler module gives to a worker. */
export type Loaded = ({ handler: Handler } | { handlers: TaskHandler[] }) & {
  backoff?: BackoffFunction;
};

/**
 * Loads a handler module. Its default export is a function (for all tasks), an object of functions
 * by task name, or an array made by `defineTask(…).handler(fn)`. An export `backoff`, if there is one, is
 * the worker's option of that name.
 * @throws InvalidOptionError when it is none of these · whatever the module itself throws
 */
export async function loadHandlers(file: string): Promise<Loaded> {
  const module = (await import(pathToFileURL(resolve(file)).href)) as {
    default?: unknown;
    backoff?: BackoffFunction;
  };
  const { default: exported, backoff } = module;
  const beside = backoff === undefined ? {} : { backoff };
  if (typeof exported === 'function') return { handler: exported as Handler, ...beside };
  if (Array.isArray(exported)) return { handlers: exported as TaskHandler[], ...beside };
  if (typeof exported === 'object' && exported !== null) {
    const handlers = Object.entries(exported).map(([task, run]) => ({
      task,
      run: run as TaskHandler['run'],
    }));
    if (handlers.length > 0) return { handlers, ...beside };
  }
  throw new InvalidOptionError(
    '--handler',
    file,
    'a module with a function, or functions by task, as default export',
  );
}
