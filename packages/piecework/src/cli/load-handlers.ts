import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { InvalidOptionError } from '@piecework/protocol';
import type { Handler, TaskHandler } from '@piecework/worker';

/**
 * Loads a handler module. Its default export is a function (for all tasks), an object of functions
 * by task name, or an array made by `defineTask(…).handler(fn)`.
 * @throws InvalidOptionError when it is none of these · whatever the module itself throws
 */
export async function loadHandlers(
  file: string,
): Promise<{ handler: Handler } | { handlers: TaskHandler[] }> {
  const module = (await import(pathToFileURL(resolve(file)).href)) as { default?: unknown };
  const exported = module.default;
  if (typeof exported === 'function') return { handler: exported as Handler };
  if (Array.isArray(exported)) return { handlers: exported as TaskHandler[] };
  if (typeof exported === 'object' && exported !== null) {
    const handlers = Object.entries(exported).map(([task, run]) => ({
      task,
      run: run as TaskHandler['run'],
    }));
    if (handlers.length > 0) return { handlers };
  }
  throw new InvalidOptionError(
    '--handler',
    file,
    'a module with a function, or functions by task, as default export',
  );
}
