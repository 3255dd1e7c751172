/**
 * docs/logs.md lists each line that is logged: what the sources log, found in the compiled files, is what it says.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type AnyNode,
  type Function as Callable,
  type CallExpression,
  type Identifier,
  type Node,
  parse,
} from 'acorn';
import { describe, expect, it } from 'vitest';
import { root } from './examples.js';

const LEVELS = ['debug', 'info', 'warn', 'error', 'fatal'];
/** Methods that take a level and a text, and log them. */
const SAYS = ['say', 'failed'];
/** Logs what its callers say. */
const PASSED_ON = 'report/flood.js';
/** Said by `Flood` of its own accord. */
const OF_FLOOD = '… more of: …';

interface Event {
  readonly msg: string;
  readonly levels: Set<string>;
  /** Fields that are written where it is logged; others come by objects that are spread. */
  readonly fields: Set<string>;
}

/** All nodes of a tree. */
function* nodesOf(node: unknown): Generator<AnyNode> {
  if (Array.isArray(node)) for (const one of node) yield* nodesOf(one);
  else if (typeof node === 'object' && node !== null && 'type' in node) {
    yield node as AnyNode;
    for (const [key, child] of Object.entries(node)) if (key !== 'parent') yield* nodesOf(child);
  }
}

const trees = new Map<string, Node>();
for (const name of ['worker', 'cli', 'dashboard']) {
  const dist = join(root, 'packages', name, 'dist');
  for (const path of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    if (!path.endsWith('.js')) continue;
    const options = { ecmaVersion: 'latest', sourceType: 'module' } as const;
    trees.set(`${name}/${path}`, parse(readFileSync(join(dist, path), 'utf8'), options));
  }
}

/** Functions with a name, of all files: a text may be made by one. */
const functions = new Map<string, Callable>();
for (const tree of trees.values())
  for (const node of nodesOf(tree))
    if (node.type === 'FunctionDeclaration' && node.id) functions.set(node.id.name, node);

/** The innermost function around a name that declares it; the whole file, if none does. */
function scopeOf({ name, start, end }: Identifier, tree: Node): Node {
  const around = [...nodesOf(tree)].filter(
    (one) => 'body' in one && 'params' in one && one.start <= start && one.end >= end,
  );
  const declares = (one: Node) =>
    [...nodesOf(one)].some(
      (inner) =>
        inner.type === 'VariableDeclarator' &&
        inner.id.type === 'Identifier' &&
        inner.id.name === name,
    );
  return around.findLast(declares) ?? tree;
}

/** The texts that an expression may be; '…' for each part that is not known. */
function textsOf(node: AnyNode | null | undefined, tree: Node): string[] {
  if (!node) return ['…'];
  if (node.type === 'Literal') return [String(node.value)];
  if (node.type === 'TemplateLiteral') {
    const parts = node.quasis.map(({ value }) => value.cooked ?? '');
    return [parts.join('…')];
  }
  if (node.type === 'ConditionalExpression')
    return [...textsOf(node.consequent, tree), ...textsOf(node.alternate, tree)];
  if (node.type === 'Identifier') {
    const declared = [...nodesOf(scopeOf(node, tree))].find(
      (one) =>
        one.type === 'VariableDeclarator' &&
        one.id.type === 'Identifier' &&
        one.id.name === node.name,
    );
    return declared?.type === 'VariableDeclarator' ? textsOf(declared.init, tree) : [];
  }
  if (node.type === 'CallExpression' && node.callee.type === 'Identifier') {
    const called = functions.get(node.callee.name);
    const returns = called ? [...nodesOf(called.body)] : [];
    const texts = returns.flatMap((one) =>
      one.type === 'ReturnStatement' && one.argument?.type === 'TemplateLiteral'
        ? textsOf(one.argument, tree)
        : [],
    );
    return texts.length > 0 ? texts : ['…'];
  }
  return ['…'];
}

/** Names of the fields that are written in an argument. */
const fieldsIn = (node: AnyNode | undefined): string[] => {
  if (node?.type === 'ArrowFunctionExpression') return fieldsIn(node.body as AnyNode);
  if (node?.type !== 'ObjectExpression') return [];
  return node.properties.flatMap((property) =>
    property.type === 'Property' && property.key.type === 'Identifier' ? [property.key.name] : [],
  );
};

/** Whether an expression names a logger. */
function isLogger(node: AnyNode): boolean {
  if (node.type === 'Identifier' || node.type === 'PrivateIdentifier')
    return /log(ger)?$/i.test(node.name);
  return (
    node.type === 'MemberExpression' &&
    'name' in node.property &&
    isLogger(node.property as AnyNode)
  );
}

const areLevels = (texts: readonly string[]) =>
  texts.length > 0 && texts.every((text) => LEVELS.includes(text));

/** What one call logs, if it does. */
function loggedBy(call: CallExpression, tree: Node) {
  const { callee } = call;
  const args = call.arguments as AnyNode[];
  if (callee.type !== 'MemberExpression') return undefined;
  const { property } = callee;
  const name = 'name' in property && !callee.computed ? String(property.name) : '';
  if (isLogger(callee.object as AnyNode)) {
    const levels = callee.computed ? textsOf(property as AnyNode, tree) : [name];
    if (!areLevels(levels)) return undefined;
    const texts = textsOf(args.length === 1 ? args[0] : args[1], tree);
    return { levels, texts, fields: args.length === 1 ? [] : fieldsIn(args[0]) };
  }
  if (!SAYS.includes(name) || args.length < 3) return undefined;
  const isFailed = name === 'failed';
  const levels = isFailed ? ['error', 'warn'] : textsOf(args[0], tree);
  const texts = textsOf(isFailed ? args[2] : args[1], tree);
  const fields = args.slice(2).flatMap(fieldsIn);
  return areLevels(levels) ? { levels, texts, fields } : undefined;
}

/** Everything that the sources log, by its text. */
function logged(): Map<string, Event> {
  const found = new Map<string, Event>();
  for (const [file, tree] of trees) {
    if (file.endsWith(PASSED_ON)) continue;
    for (const node of nodesOf(tree)) {
      if (node.type !== 'CallExpression') continue;
      const one = loggedBy(node, tree);
      for (const [i, msg] of (one?.texts ?? []).entries()) {
        const event = found.get(msg) ?? { msg, levels: new Set(), fields: new Set() };
        const levels = one?.levels ?? [];
        // Where level and text are chosen by the same condition, each text has one.
        const pair = levels.length > 1 && levels.length === one?.texts.length;
        for (const level of pair ? levels.slice(i, i + 1) : levels) event.levels.add(level);
        for (const field of one?.fields ?? []) event.fields.add(field);
        found.set(msg, event);
      }
    }
  }
  return found;
}

const page = readFileSync(join(root, 'docs/logs.md'), 'utf8');
const named = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name as string);

/** The rows of the tables of events. */
function documented(): Map<string, Event> {
  const rows = page.split('\n').flatMap((line) => {
    const [, msg = '', levels = '', fields = ''] = line.split('|').map((cell) => cell.trim());
    const isRow = levels.split(', ').every((level) => LEVELS.includes(level));
    return isRow ? [{ msg: named(msg)[0] as string, levels, fields }] : [];
  });
  return new Map(
    rows.map(({ msg, levels, fields }) => [
      msg,
      { msg, levels: new Set(levels.split(', ')), fields: new Set(named(fields)) },
    ]),
  );
}

/** The fields that lines of many kinds have. */
const common = new Set(
  page
    .slice(page.indexOf('## Fields'), page.indexOf('## Requests'))
    .split('\n')
    .flatMap((line) => (line.startsWith('| `') ? named(line.split('|')[1] as string) : [])),
);

describe('docs/logs.md', () => {
  const found = logged();
  const listed = documented();

  it('lists each line that is logged, with its level, and no other', () => {
    expect(found.size).toBeGreaterThan(40);
    const inShort = (events: Map<string, Event>) =>
      [...events.values()].map(({ msg, levels }) => `${[...levels].sort()}: ${msg}`).sort();
    expect(inShort(found)).toEqual(inShort(listed));
    expect(page).toContain(OF_FLOOD);
  });

  it('lists the fields of each', () => {
    const missing = [...found.values()].flatMap(({ msg, fields }) =>
      [...fields]
        .filter((field) => !common.has(field) && !listed.get(msg)?.fields.has(field))
        .map((field) => `${msg}: ${field}`),
    );
    expect(missing).toEqual([]);
    // And no field that nothing has.
    const written = [...trees.values()].flatMap((tree) => [...nodesOf(tree)]);
    const names = new Set(
      written.flatMap((node) => (node.type === 'Identifier' ? [node.name] : [])),
    );
    const unknown = [...listed.values()].flatMap(({ msg, fields }) =>
      [...fields].filter((field) => !names.has(field)).map((field) => `${msg}: ${field}`),
    );
    expect(unknown).toEqual([]);
  });
});
