/**
 * `close()` ends everything that runs in the background: see "Starting and closing" in docs/architecture.md.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as acorn from 'acorn';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Methods that ioredis calls by its own words. */
const OF_IOREDIS = ['FollowingConnector.disconnect'];

/** Other words for `close`. */
const ENDS = new Set(['stop', 'disconnect', 'shutdown', 'terminate', 'destroy']);

/** A node of the syntax tree that acorn returns. */
interface Node {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** `Class.method` for each public method of a class whose name is among `names`. */
function methodsIn(text: string, names: ReadonlySet<string>): string[] {
  const found: string[] = [];
  const visit = (node: Node, owner: string): void => {
    const isClass = node.type === 'ClassDeclaration' || node.type === 'ClassExpression';
    const within = isClass ? ((node.id as Node | null)?.name as string) : owner;
    const { key, kind } = node as { key?: Node; kind?: string };
    const isMethod = node.type === 'MethodDefinition' && kind === 'method';
    const isFunction =
      node.type === 'PropertyDefinition' &&
      (node.value as Node | null)?.type === 'ArrowFunctionExpression';
    const isPublic = key?.type === 'Identifier';
    if ((isMethod || isFunction) && isPublic && names.has(key.name as string))
      found.push(`${within}.${key.name}`);
    for (const value of Object.values(node)) {
      for (const child of Array.isArray(value) ? value : [value]) {
        if (child && typeof child === 'object' && 'type' in child) visit(child as Node, within);
      }
    }
  };
  const program = acorn.parse(text, {
    ecmaVersion: 'latest',
    sourceType: 'module',
    allowHashBang: true,
  });
  visit(program as unknown as Node, '');
  return found;
}

/** Each source of the packages and tools, with the file that was built from it. */
function* built(): Generator<{ source: string; file: string }> {
  for (const folder of ['packages', 'tools']) {
    for (const name of readdirSync(join(root, folder))) {
      const src = join(root, folder, name, 'src');
      if (!existsSync(src)) continue;
      for (const path of readdirSync(src, { recursive: true, encoding: 'utf8' })) {
        if (!path.endsWith('.ts') || path.endsWith('.d.ts')) continue;
        const file = join(root, folder, name, 'dist', path.replace(/\.ts$/, '.js'));
        yield { source: `${folder}/${name}/src/${path}`, file };
      }
    }
  }
}

it('a class that runs something ends it with `close`, and has no other word for it', () => {
  const found: string[] = [];
  let files = 0;
  for (const { source, file } of built()) {
    files += 1;
    for (const method of methodsIn(readFileSync(file, 'utf8'), ENDS))
      if (!OF_IOREDIS.includes(method)) found.push(`${source}: ${method}`);
  }
  expect(files).toBeGreaterThan(200);
  expect(found).toEqual([]);
});

it('finds a class that has another word for `close`', () => {
  const timer = 'class Timer { stop() {} #stop() {} }';
  const text = `${timer} class Line { disconnect = () => {}; stopped() {} }`;
  expect(methodsIn(text, ENDS)).toEqual(['Timer.stop', 'Line.disconnect']);
});
