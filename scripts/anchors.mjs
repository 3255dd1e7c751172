/*
 * A comment `cure: <name>` before a piece of code is the anchor of a cure, in Lua and in TypeScript (tsc keeps it).
 * This module finds the anchors of a text, and switches a cure off by changing the syntax node that follows its anchor:
 * the largest one that starts there. So names and lines of the code may change.
 *
 * A node can be changed in these ways:
 *   'skip'         it is removed: a statement, an argument, an element, or an operand together with its operator
 *   { skip: n }    it and the statements, arguments or elements behind it, n in all
 *   'never'        its condition is false; of a declaration, an assignment or a return, the value is
 *   'always'       the same is true
 *   { becomes }    its condition or value, or else the node itself, becomes this text; `uses` lists what it calls
 *                  that the file does not
 */
import * as acorn from 'acorn';
import luaparse from 'luaparse';

const LUA_GIVEN = [
  ...[
    'KEYS',
    'ARGV',
    'redis',
    'cjson',
    'cmsgpack',
    'math',
    'string',
    'table',
    'call',
    'max',
    'min',
    'floor',
  ],
  ...['tonumber', 'tostring', 'type', 'ipairs', 'pairs', 'unpack', 'pcall'],
];

const LANGUAGES = {
  lua: {
    parse(text) {
      const root = luaparse.parse(text, { luaVersion: '5.1', ranges: true, comments: true });
      const { comments, ...tree } = root;
      return {
        tree,
        comments: comments.map(({ value, range: [start, end] }) => ({ value, start, end })),
      };
    },
    given: new Set(LUA_GIVEN),
  },
  js: {
    parse(text) {
      const comments = [];
      const tree = acorn.parse(text, {
        ecmaVersion: 'latest',
        sourceType: 'module',
        preserveParens: true,
        allowHashBang: true,
        onComment: (_, value, start, end) => comments.push({ value, start, end }),
      });
      return { tree, comments };
    },
    given: new Set(
      [globalThis, Array.prototype, Date, Math, performance].flatMap((of) => [
        ...Object.getOwnPropertyNames(of),
        ...Object.getOwnPropertyNames(Object.getPrototypeOf(of)),
      ]),
    ),
  },
};

/** The name in a comment, if the comment is an anchor. */
const nameIn = (comment) => /^\s*cure: (.+?)\s*$/.exec(comment)?.[1];

/** The names of all anchors in a text, in order. `ts` needs no parser: a name ends with its comment. */
export function anchorsIn(language, text) {
  if (language === 'ts') {
    const anchors = text.matchAll(/\/\/ cure: (.+)$|\/\* cure: (.+?) \*\//gm);
    return Array.from(anchors, ([, line, inline]) => line ?? inline);
  }
  const { comments } = LANGUAGES[language].parse(text);
  return comments.map(({ value }) => nameIn(value)).filter(Boolean);
}

/** Removes anchors within a line of Lua; `strip` removes whole lines. */
export const withoutAnchors = (lua) => lua.replaceAll(/--\[\[cure: [^\]\n]*\]\] ?/g, '');

/**
 * Changes the node after an anchor.
 * @param {'lua' | 'js'} language
 * @throws Error when the anchor does not occur exactly once, when its node cannot be changed like that, when the
 *   result cannot be parsed, or when it uses a name that the text did not have: a mutant that fails because of an
 *   unknown name proves nothing
 */
export function changeAt(language, text, cure, change = 'skip') {
  const { parse, given } = LANGUAGES[language];
  const fail = (why) => {
    throw new Error(`cure '${cure}': ${why}`);
  };
  const { tree, comments, places, nodes } = parsedOf(language, text);
  const anchors = comments.filter(({ value }) => nameIn(value) === cure);
  if (anchors.length !== 1) fail(`its anchor occurs ${anchors.length} times`);
  const start = afterComments(text, anchors[0].end, places);
  const here = nodes
    .filter((node) => node.parent && node.start === start)
    .sort((a, b) => b.end - a.end);
  if (here.length === 0) fail('no statement or expression starts behind its anchor');
  const [from, to, by] =
    edit(here, text, change) ?? fail(`what follows cannot be changed by ${JSON.stringify(change)}`);
  const changed = text.slice(0, from) + by + text.slice(to);
  let names;
  try {
    names = namesOf(parse(changed).tree);
  } catch (error) {
    fail(`what it leaves cannot be parsed: ${error.message}`);
  }
  const known = namesOf(tree, new Set(change.uses));
  for (const name of names)
    if (!known.has(name) && !given.has(name)) fail(`nothing is called ${name}`);
  return changed;
}

/** Texts that were parsed: many cures are in the same one. */
const parsed = new Map();

/** The syntax tree of a text, its comments, the places of these, and all nodes. */
function parsedOf(language, text) {
  const key = `${language} ${text}`;
  const known = parsed.get(key);
  if (known) return known;
  const { tree, comments } = LANGUAGES[language].parse(text);
  const places = {
    startingAt: new Map(comments.map((one) => [one.start, one])),
    endingAt: new Map(comments.map((one) => [one.end, one])),
  };
  const found = { tree, comments, places, nodes: nodesOf(tree, text, places) };
  // So few that the memory is no matter.
  if (parsed.size === 100) parsed.clear();
  parsed.set(key, found);
  return found;
}

/** Where the first token behind `at` begins. */
function afterComments(text, at, comments) {
  let to = at;
  for (;;) {
    while (/\s/.test(text[to] ?? '')) to += 1;
    const comment = comments.startingAt.get(to);
    if (!comment) return to;
    to = comment.end;
  }
}

/** Where the last token before `at` ends. */
function beforeComments(text, at, comments) {
  let to = at;
  for (;;) {
    while (/\s/.test(text[to - 1] ?? '')) to -= 1;
    const comment = comments.endingAt.get(to);
    if (!comment) return to;
    to = comment.start;
  }
}

/**
 * Every node with its place: which field of the node above it is in, and among which siblings. Of a node in
 * parentheses, `outer` counts these in.
 */
function nodesOf(root, text, comments) {
  const nodes = [];
  const visit = (tree, parent, field, siblings, index) => {
    const [start, end] = tree.range ?? [tree.start, tree.end];
    const node = { tree, parent, field, siblings, index, start, end, children: {} };
    node.outer = withParens(node, text, comments);
    nodes.push(node);
    if (node.outer.start < start) nodes.push({ ...node, ...node.outer });
    for (const [name, value] of Object.entries(tree)) {
      if (value?.type) node.children[name] = visit(value, node, name);
      if (!Array.isArray(value)) continue;
      const list = [];
      node.children[name] = list;
      for (const child of value)
        if (child?.type) list.push(visit(child, node, name, list, list.length));
    }
    return node;
  };
  visit(root);
  return nodes;
}

/** The place of a node with its parentheses, for which luaparse has no nodes, as acorn has. */
function withParens({ start, end, parent, field }, text, comments) {
  if (!parent?.tree.range || field === 'parameters') return { start, end };
  // The first ones of a call are its own.
  const base = parent.children.base?.end;
  const least = field === 'arguments' && base ? text.indexOf('(', base) + 1 : parent.start;
  const from = beforeComments(text, start, comments) - 1;
  const to = afterComments(text, end, comments);
  const hasThem = from >= least && text[from] === '(' && to < parent.end && text[to] === ')';
  return hasThem ? { start: from, end: to + 1 } : { start, end };
}

/** The names that a tree uses, those of properties too. */
function namesOf(tree, names = new Set()) {
  if (tree.type === 'Identifier' || tree.type === 'PrivateIdentifier') names.add(tree.name);
  for (const field in tree) {
    const value = tree[field];
    if (value?.type) namesOf(value, names);
    else if (Array.isArray(value)) for (const one of value) if (one?.type) namesOf(one, names);
  }
  return names;
}

/** The replacement, `[from, to, text]`; undefined when none of the nodes fits the change. */
function edit(here, text, change) {
  const count = change === 'skip' ? 1 : change.skip;
  if (count === undefined) {
    const { start, end } = subjectOf(here[0]);
    return [
      start,
      end,
      change === 'never' ? 'false' : change === 'always' ? 'true' : change.becomes,
    ];
  }
  for (const node of here) {
    const removed = removal(node, count, text);
    if (removed) return removed;
  }
  return undefined;
}

const HAS_VALUE =
  /^(?:LocalStatement|VariableDeclarat(?:ion|or)|Assignment(?:Statement|Expression)|ReturnStatement|PropertyDefinition|Property|TableKey(?:String)?)$/;
const VALUES = ['declarations', 'init', 'right', 'argument', 'arguments', 'value'];
const CONDITIONS = ['clauses', 'condition', 'test'];

/** Of a node, the place of its condition or its value, or else its own. */
function subjectOf(node) {
  const { tree, children } = node;
  const inner = children.expression ?? children.declaration;
  if (/^Expression|^Export/.test(tree.type) && inner) return subjectOf(inner);
  for (const field of HAS_VALUE.test(tree.type) ? VALUES : CONDITIONS) {
    const found = children[field];
    if (field === 'declarations' || field === 'clauses') {
      if (found && (field === 'clauses' || found.length === 1)) return subjectOf(found[0]);
    } else if (found && !Array.isArray(found)) return found.outer;
    else if (found?.length === 1) return found[0].outer;
  }
  return node.outer;
}

const LISTS = new Set(['body', 'consequent', 'arguments', 'elements', 'fields', 'properties']);
const DECLARES = /^(?:LocalStatement|VariableDeclaration|(?:Function|Class)Declaration)$/;

/** How to remove a node and those behind it, `count` in all, if it can be removed. */
function removal({ tree, parent, field, siblings, index, start, outer }, count, text) {
  if (!parent || DECLARES.test(tree.type)) return undefined;
  if (siblings && (field === 'clauses' ? index > 0 : LISTS.has(field))) {
    const last = siblings[index + count - 1];
    if (!last) return undefined;
    const isListed = field !== 'body' && field !== 'consequent' && field !== 'clauses';
    if (!isListed) return [outer.start, last.outer.end, ''];
    const next = siblings[index + count];
    if (next) return [outer.start, next.outer.start, ''];
    return [siblings[index - 1]?.outer.end ?? outer.start, last.outer.end, ''];
  }
  if (/^(?:Binary|Logical)Expression$/.test(parent.tree.type) && count === 1) {
    // Of `a and b and c`, `a` stands before the others as `a and b` does.
    if (field === 'left' && tree.operator === parent.tree.operator && outer.start === start)
      return undefined;
    const { left, right } = parent.children;
    const other = field === 'left' ? right.outer : left.outer;
    return [parent.start, parent.end, text.slice(other.start, other.end)];
  }
  // The only statement of an `if` or a loop without braces.
  if (/Statement$/.test(tree.type)) return [outer.start, outer.end, ';'];
  return undefined;
}
