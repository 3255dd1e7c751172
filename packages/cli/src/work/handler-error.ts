import { spawnSync } from 'node:child_process';
import { extname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PieceworkError, readThrown } from '@piecework/protocol/contract';

/** The module of `--handler` cannot be used: wrong usage, and nothing was run. */
export class HandlerError extends PieceworkError {
  override readonly name = 'HandlerError';

  /** @param code HANDLER_THREW: the code of the module threw while it was loaded */
  constructor(file: string, why: string, code: 'HANDLER' | 'HANDLER_THREW' = 'HANDLER') {
    super(`--handler ${file}: ${why}`, { code });
  }
}

/** How long a second Node may take to find the place of a syntax error, in ms. */
const CHECK_MS = 10_000;

/** Explains what was thrown while a module was loaded: the place, the reason, and what to do. */
export function whyNotLoaded(file: string, url: string, thrown: unknown): HandlerError {
  const { code = '' } = (thrown ?? {}) as { code?: unknown };
  const { name, message, stack = '' } = readThrown(thrown);
  const [first = ''] = message.split('\n');
  if (code === 'ERR_UNKNOWN_FILE_EXTENSION') return new HandlerError(file, unknownKind(file));
  if (code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX')
    return new HandlerError(file, `${first}; compile it with tsc, or ${BY_TSX}`);
  if (code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND')
    return new HandlerError(
      file,
      `one of its imports cannot be found: ${first}; ${missing(first)}`,
    );
  if (/^ERR_IMPORT_(ASSERTION|ATTRIBUTE)/.test(String(code)))
    return new HandlerError(file, 'it is not a JavaScript module');
  if (NO_MODULE.test(first)) {
    const place = placeOfCode(stack) ?? file;
    const cure = first.startsWith('require') ? 'use import' : 'write export default …';
    const why = `${first.split(',')[0]}; ${cure}, or name the file .cjs`;
    return new HandlerError(file, `${place}: ${why}`);
  }
  if (name !== 'SyntaxError' && code !== 'ERR_INVALID_TYPESCRIPT_SYNTAX')
    return new HandlerError(file, threw(stack, name, first), 'HANDLER_THREW');
  // A syntax error is not in the code that ran.
  const ran = placeOfCode(stack);
  const text = placeOfText(stack) ?? (ran ? undefined : placeFoundAgain(url));
  if (!text && ran) return new HandlerError(file, threw(stack, name, first), 'HANDLER_THREW');
  const at = text ? `${text}: ` : '';
  return new HandlerError(file, `${at}${name}: ${first}${isModule(first) ? AS_MODULE : ''}`);
}

/** CommonJS in a file that Node takes for an ES module. */
const NO_MODULE = /^(module|exports|require) is not defined in ES module scope/;

const AS_MODULE = '; name it .mjs, or put "type": "module" into the package.json beside it';

/** Whether Node took the file for CommonJS, as nothing says that it is a module. */
const isModule = (message: string) =>
  /^Cannot use import statement|^Unexpected token 'export'/.test(message);

const BY_TSX = `run it by tsx: npm install tsx, then NODE_OPTIONS='--import tsx' piecework …`;

function unknownKind(file: string): string {
  const kind = extname(file);
  const node = `Node ${process.versions.node}`;
  if (!/^\.[cm]?tsx?$/.test(kind))
    return `Node does not run ${kind} files; run a program by --exec instead: --exec './${file}'`;
  if (kind.endsWith('x'))
    return `Node does not run ${kind} files; compile it with tsc, or ${BY_TSX}`;
  const flag = '--experimental-strip-types';
  if (process.allowedNodeEnvironmentFlags.has(flag))
    return `${node} runs TypeScript only with a flag: NODE_OPTIONS=${flag} piecework …`;
  return `${node} does not run TypeScript; use Node 22.18 or newer, compile it with tsc, or ${BY_TSX}`;
}

function missing(message: string): string {
  const name = /^Cannot find package '([^']+)'/.exec(message)?.[1];
  return name
    ? `npm install ${name} in its folder`
    : 'correct the path, and write it with the extension of the file';
}

function threw(stack: string, name: string, message: string): string {
  const place = placeOfCode(stack);
  return `it threw while it was loaded${place ? `, at ${place}` : ''}: ${name}: ${message}`;
}

const FRAME = /^ {4}at (?:async )?(?:.*\()?((?:file:\/\/)?\/[^()]+):(\d+):(\d+)\)?$/gm;
const OURS = new URL('..', import.meta.url).href;

/** 'lib/rates.js:3:7': the first place in a stack that is not in our code. */
function placeOfCode(stack: string): string | undefined {
  for (const [, file = '', line, column] of stack.matchAll(FRAME))
    if (!file.startsWith(OURS)) return `${shown(file)}:${line}:${column}`;
  return undefined;
}

/** 'lib/rates.js:3': the place of a syntax error, which Node prints above the message. */
function placeOfText(text: string): string | undefined {
  const [, file, line] = /^((?:file:\/\/)?\/.*):(\d+)$/m.exec(text) ?? [];
  return file ? `${shown(file)}:${line}` : undefined;
}

/** Node prints the place of a syntax error only if nobody catches it: so another Node loads the module again. */
function placeFoundAgain(url: string): string | undefined {
  const load = ['--input-type=module', '--eval', `import ${JSON.stringify(url)}`];
  const { stderr } = spawnSync(process.execPath, [...process.execArgv, ...load], {
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
    timeout: CHECK_MS,
  });
  return placeOfText(stderr ?? '');
}

function shown(file: string): string {
  const path = file.startsWith('file:') ? fileURLToPath(file) : file;
  const near = relative('', path);
  return near.startsWith('..') ? path : near;
}
