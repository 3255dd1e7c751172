import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BackoffFunction, Handler, TaskHandler } from '@piecework/worker';
import { HandlerError, whyNotLoaded } from './handler-error.js';

/** The options that a handler module, or the programs of `--exec`, give to a worker. */
export type Loaded = ({ handler: Handler } | { handlers: TaskHandler[] }) & {
  backoff?: BackoffFunction;
  jsonText?: boolean;
};

/**
 * Loads a handler module. Its default export is a function (for all tasks), an object of functions by task name, or an
 * array of results of `defineTask(…).handler(fn)`. The export `backoff`, if there is one, is the option of that name.
 * @throws HandlerError when the module cannot be loaded, or exports something else
 */
export async function loadHandlers(file: string): Promise<Loaded> {
  const { href } = pathToFileURL(resolve(file));
  withoutHint();
  const loaded: HandlerModule = await import(href).catch((thrown: unknown) => {
    throw whyNotLoaded(file, href, thrown);
  });
  const { default: exported, backoff } = ofCompiled(loaded);
  if (backoff !== undefined && typeof backoff !== 'function')
    throw new HandlerError(file, 'its export backoff is not a function');
  const beside = backoff === undefined ? {} : { backoff: backoff as BackoffFunction };
  if (typeof exported === 'function') return { handler: exported as Handler, ...beside };
  return { handlers: handlersOf(file, exported), ...beside };
}

interface HandlerModule {
  readonly default?: unknown;
  readonly backoff?: unknown;
}

/**
 * tsc compiles `export default` for CommonJS to a property of `module.exports` beside `__esModule`, and Node gives all of
 * `module.exports` as the default export.
 */
function ofCompiled(module: HandlerModule): HandlerModule {
  const exported = module.default as (HandlerModule & { __esModule?: unknown }) | null | undefined;
  const isCompiled =
    typeof exported === 'object' && exported?.__esModule === true && 'default' in exported;
  if (!isCompiled) return module;
  return { default: exported.default, backoff: exported.backoff ?? module.backoff };
}

/** Suppresses a warning of Node about ES modules: our own error says more. */
function withoutHint(): void {
  const listeners = process.listeners('warning');
  process.removeAllListeners('warning');
  process.on('warning', (warning) => {
    if (warning.message.startsWith('To load an ES module')) return;
    for (const listener of listeners) Reflect.apply(listener, process, [warning]);
  });
}

/** @throws HandlerError */
function handlersOf(file: string, exported: unknown): TaskHandler[] {
  if (exported === undefined) throw new HandlerError(file, `it has no default export; ${NEEDED}`);
  if (typeof exported !== 'object' || exported === null)
    throw new HandlerError(file, `its default export is not a function; ${NEEDED}`);
  if (Array.isArray(exported)) {
    if (exported.length === 0 || !exported.every(isTaskHandler))
      throw new HandlerError(
        file,
        'its default export is an array, but not of results of defineTask(…).handler(fn)',
      );
    return exported;
  }
  const handlers = Object.entries(exported);
  if (handlers.length === 0)
    throw new HandlerError(file, `its default export is an empty object; ${NEEDED}`);
  const wrong = handlers.find(([, run]) => typeof run !== 'function');
  if (wrong)
    throw new HandlerError(file, `in its default export, ${wrong[0]} is not a function; ${NEEDED}`);
  return handlers.map(([task, run]) => ({ task, run: run as TaskHandler['run'] }));
}

const NEEDED =
  'write export default async (payload) => result, or one such function for each task in an object';

function isTaskHandler(it: unknown): it is TaskHandler {
  const { task, run } = (it ?? {}) as Partial<TaskHandler>;
  return typeof task === 'string' && typeof run === 'function';
}
