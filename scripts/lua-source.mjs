// Reads lua/*.lua: parses the header of each script, resolves its includes (one level, from lua/lib), checks that
// header and body agree, and strips the comments. Used by the generator, by the header test, and by the build for
// tests, whose clock can be moved.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import luaparse from 'luaparse';
import { changeAt, withoutAnchors } from './anchors.mjs';

const folder = new URL('../lua/', import.meta.url);
const read = (name) => readFileSync(new URL(name, folder), 'utf8');

/** The source of one script, including its header. */
export const readSource = (name) => read(`${name}.lua`);

/** The SHA-1 digest by which the server knows a script. */
export const shaOf = (lua) => createHash('sha1').update(lua).digest('hex');

/** Names of all scripts, sorted. */
export const scriptNames = readdirSync(fileURLToPath(folder))
  .filter((file) => file.endsWith('.lua'))
  .map((file) => file.slice(0, -'.lua'.length))
  .sort();

/**
 * Parses a header into its sections. Throws when one is missing or a row cannot be parsed. lua/README.md explains the
 * types of a row.
 */
export function parseHeader(name, source) {
  const lines = source.split('\n');
  const header = [];
  for (const line of lines) {
    if (!line.startsWith('--')) break;
    header.push(line);
  }
  const sections = { KEYS: [], ARGV: [], REPLIES: [] };
  const fields = { REPEAT: '', FLAGS: undefined };
  const purpose = [];
  let section;
  let each = false;
  for (const line of header) {
    if (line.startsWith('--- ')) {
      if (!line.startsWith('--- @')) purpose.push(line.slice(4));
      continue;
    }
    const text = line.slice(3);
    if (text.startsWith('REPLIES of each ')) each = true;
    const title = /^(KEYS|ARGV|REPLIES|REPEAT|FLAGS)\b\s*(.*)$/.exec(text);
    if (title) {
      section = title[1];
      if (section in fields) fields[section] = title[2];
    } else if (section in sections && text.startsWith('  ')) {
      sections[section].push(text.slice(2));
    }
  }
  if (!purpose.length || !sections.REPLIES.length || !fields.REPEAT || fields.FLAGS === undefined) {
    throw new Error(`lua/${name}.lua: the header lacks a purpose, REPLIES, REPEAT or FLAGS`);
  }
  const rows = (list, types) => {
    const found = [];
    for (const line of list) {
      const [, key, rest, type, about] =
        /^(\w+)(\.\.\.)?\s+(\([^)]*\)|\S+)\s*(.*)$/.exec(line) ?? [];
      // Continues the previous row.
      if (!key) found.at(-1).about += ` ${line.trim()}`;
      else found.push({ name: key, rest: Boolean(rest), ...typeOf(name, type, types), about });
    }
    return found;
  };
  return {
    purpose: purpose.join(' '),
    keys: rows(sections.KEYS, KEY_TYPES),
    args: rows(sections.ARGV, ARGUMENT_TYPES),
    replies: repliesIn(name, sections.REPLIES.join('\n')),
    /** Whether it answers a list: one reply for each of several requests. */
    each,
    repeat: fields.REPEAT,
    flags: fields.FLAGS.trim(),
  };
}

const KEY_TYPES = new Set(['hash', 'stream', 'zset', 'list', 'set', 'any']);
const ARGUMENT_TYPES = new Set(['int', 'string', 'value', 'values', "int|''", 'int?', 'string?']);
const REPLY_TYPES = new Set([
  ...['int', 'ints', 'text', 'outcome', 'list', 'pairs', 'record', 'any'],
  'int?',
  'text?',
]);

/** A type, or `(name type, …)`: several of each. */
function typeOf(script, text, types) {
  const known = (type) => {
    if (types.has(type)) return type;
    throw new Error(
      `lua/${script}.lua: '${type}' is no type here; there are ${[...types].join(', ')}`,
    );
  };
  if (!text.startsWith('(')) return { type: known(text) };
  const each = text
    .slice(1, -1)
    .split(',')
    .map((part) => part.trim().split(' '));
  return { type: 'group', each: each.map(([name, type]) => ({ name, type: known(type) })) };
}

/** Splits at the commas outside of brackets. */
const parts = (text) => text.split(/,(?![^(]*\))/).map((part) => part.trim());

/** Each `{'word', name: type, …}` in a text: the word and its fields. */
function repliesIn(script, text) {
  const replies = [];
  for (const [, word, , rest = ''] of text.matchAll(/\{'(\w+)'(,\s*([^}]*))?\}/g)) {
    const fields = rest === '' ? [] : parts(rest);
    if (replies.some((reply) => reply.word === word)) continue;
    replies.push({
      word,
      fields: fields.map((field) => {
        const [, name, more, type] = /^(\w+)(\.\.\.)?:\s*(.+)$/s.exec(field) ?? [];
        if (!name) throw new Error(`lua/${script}.lua: reply '${word}': '${field}' has no type`);
        const numbers = /^numbers\((.*)\)$/s.exec(type);
        if (numbers) return { name, rest: false, type: 'numbers', names: parts(numbers[1]) };
        const listOf = /^list(\(.*\))$/s.exec(type);
        if (listOf)
          return { name, rest: false, ...typeOf(script, listOf[1], REPLY_TYPES), nested: true };
        return { name, rest: Boolean(more), ...typeOf(script, type, REPLY_TYPES) };
      }),
    });
  }
  return replies;
}

/** The names that `local a, b = …KEYS[1]…` gives to KEYS or ARGV, in order. */
function namesGiven(body, table) {
  const names = [];
  for (const [, left, right] of body.matchAll(
    /^local ([\w, ]+?) =\s*([^\n]*(?:\n {2}[^\n]*)*)/gm,
  )) {
    const values = right.split(/,(?![^(]*\))(?![^{]*\})/).map((value) => value.trim());
    left.split(',').forEach((name, i) => {
      if (new RegExp(`(?<!#)\\b${table}\\b`).test(values[i] ?? '')) names.push(name.trim());
    });
  }
  return names;
}

/** Throws when the header and the body of a script disagree. */
export function checkHeader(name, source) {
  const header = parseHeader(name, source);
  const body = withoutAnchors(bodyOf(source));
  const fail = (what) => {
    throw new Error(`lua/${name}.lua: ${what}`);
  };
  const expect = (table, rows, given) => {
    // A list of remaining arguments may be read by a loop, so it needs no name.
    const declared = rows.map((row) => row.name);
    const named = rows
      .filter((row) => !row.rest || given.includes(row.name))
      .map((row) => row.name);
    if (named.join() !== given.join()) {
      fail(`header says ${table} ${declared.join(', ')}; body names ${given.join(', ')}`);
    }
  };
  expect('KEYS', header.keys, namesGiven(body, 'KEYS'));
  expect('ARGV', header.args, namesGiven(body, 'ARGV'));
  const given = repliesOf(name, body);
  const returned = new Set(given.map(({ word }) => word));
  for (const { word, least, most } of given) {
    const reply = header.replies.find((known) => known.word === word);
    if (!reply) fail(`replies '${word}', which its header does not list`);
    const fixed = reply.fields.filter(({ rest }) => !rest);
    const needed = fixed.filter(({ type }) => !type.endsWith('?'));
    const fits =
      most === undefined ? least <= fixed.length : most <= fixed.length && least >= needed.length;
    if (!fits) fail(`replies '${word}' with ${least} values; its header lists ${fixed.length}`);
  }
  if (!/return \{ (verdict\b|state\.status|pushTokens)/.test(body)) {
    for (const { word } of header.replies) {
      if (!returned.has(word)) fail(`never replies '${word}', which its header lists`);
    }
  }
  return header;
}

/** Every table that a script returns, from its syntax tree: its word, and how many values follow. */
function repliesOf(name, body) {
  const found = [];
  const visit = (node, inFunction) => {
    if (!node || typeof node !== 'object') return;
    // What a local function returns is no reply, unless the function is named so.
    const within =
      node.type === 'FunctionDeclaration' ? node.identifier?.name !== 'replyTo' : inFunction;
    const named = node.variables?.some((variable) => variable.name === 'reply');
    const returned = node.type === 'ReturnStatement' && !within ? node.arguments : [];
    const answers = named ? node.init : returned;
    for (const table of answers) {
      const [first, ...rest] = table.type === 'TableConstructorExpression' ? table.fields : [];
      if (first?.value?.type !== 'StringLiteral') continue;
      // The parser keeps no values without an encoding, but how they are written.
      const word = first.value.raw.slice(1, -1);
      const open = rest.at(-1)?.value.base?.name === 'unpack';
      const least = rest.length - (open ? 1 : 0);
      found.push({ word, least, most: open ? undefined : rest.length });
    }
    for (const child of Object.values(node)) visit(child, within);
  };
  visit(parse(name, body).body, false);
  return found;
}

const parse = (name, lua) => {
  try {
    return luaparse.parse(lua, { luaVersion: '5.1', scope: true, comments: false });
  } catch (error) {
    throw new Error(`lua/${name}.lua: ${error.message}`);
  }
};

/** The globals of Redis that our scripts use. */
const PROVIDED = new Set([
  ...['KEYS', 'ARGV', 'redis', 'cjson', 'cmsgpack', 'math', 'string', 'table'],
  ...['tonumber', 'tostring', 'type', 'ipairs', 'pairs', 'unpack', 'pcall'],
]);

/** What `--- @include`, `--- @needs` or `--- @host` names, on one line or several. */
const namedBy = (tag, source) =>
  [...source.matchAll(new RegExp(`^ *--- @${tag} (.+)$`, 'gm'))].flatMap(([, names]) =>
    names.split(',').map((part) => part.trim()),
  );

/** Names of all libraries, sorted. */
export const libraryNames = readdirSync(fileURLToPath(new URL('lib/', folder)))
  .map((file) => file.slice(0, -'.lua'.length))
  .sort();

/** The names that a library defines for later ones, and those that it uses from elsewhere. */
function borderOf(name, source) {
  const { body, globals } = parse(`lib/${name}`, source);
  const gives = body.flatMap((statement) => {
    if (statement.type === 'LocalStatement') return statement.variables.map((local) => local.name);
    return statement.type === 'FunctionDeclaration' ? [statement.identifier.name] : [];
  });
  const script = new Set(['KEYS', 'ARGV']);
  const takes = globals.map((global) => global.name);
  return { gives, takes: takes.filter((of) => script.has(of) || !PROVIDED.has(of)) };
}

/** The source of one library. */
export const readLibrary = (name) => read(`lib/${name}.lua`);

/** Throws when the names that a library uses from elsewhere are not those that its head declares. */
export function checkLibrary(name, source = readLibrary(name)) {
  const fail = (what) => {
    throw new Error(`lua/lib/${name}.lua: ${what}`);
  };
  const needs = namedBy('needs', source);
  const host = namedBy('host', source);
  const { takes } = borderOf(name, source);
  const given = new Map(
    needs.map((of) => [
      of,
      borderOf(of, readLibrary(of)).gives.filter((one) => takes.includes(one)),
    ]),
  );
  for (const [of, names] of given)
    if (names.length === 0) fail(`needs nothing of ${of}, which it declares`);
  for (const of of host) if (!takes.includes(of)) fail(`does not use ${of}, which it declares`);
  const declared = new Set([...host, ...[...given.values()].flat()]);
  for (const of of takes) if (!declared.has(of)) fail(`uses ${of}, and does not say from where`);
}

/** Throws when a script includes a library before one that it needs, or uses a name that nothing defines. */
function checkIncludes(name, included, lua) {
  included.forEach((part, i) => {
    const before = included.slice(0, i);
    for (const need of namedBy('needs', readLibrary(part))) {
      if (!before.includes(need))
        throw new Error(`lua/${name}.lua: ${part} needs ${need} before it`);
    }
  });
  const { globals } = parse(name, lua.slice(lua.indexOf('\n')));
  for (const { name: of } of globals) {
    if (!PROVIDED.has(of)) throw new Error(`lua/${name}.lua: nothing gives it ${of}`);
  }
}

const bodyOf = (source) => source.replace(/^(?:--[^\n]*\n|\n)+/, '');

const strip = (lua) =>
  withoutAnchors(lua)
    .split('\n')
    .map((line) => line.replace(/^\s*--.*$/, '').trim())
    .filter(Boolean)
    .join('\n');

/**
 * Builds every script: `{ name: { lua, sha } }`.
 * @param {{ clock?: 'server' | 'test', mutations?: readonly Mutation[] }} [options] `test`: the clock can be moved by
 *   the caller; `mutations`: cures that are switched off (see anchors.mjs), or the flags of a script
 */
export function buildScripts({ clock = 'server', mutations = [] } = {}) {
  const scripts = {};
  for (const name of scriptNames) {
    const mine = mutations.filter(({ script }) => script === name);
    scripts[name] = buildScript(name, clock, mine);
  }
  return scripts;
}

/** What was built without mutations: the sources do not change while a process runs, and to check them takes long. */
const healthy = new Map();
const headers = new Map();

const kept = (map, key, make) => {
  if (!map.has(key)) map.set(key, make());
  return map.get(key);
};

/** Builds one script, see `buildScripts`. */
export function buildScript(name, clock, mutations = []) {
  if (mutations.length > 0) return build(name, clock, mutations);
  return kept(healthy, `${name} ${clock}`, () => build(name, clock, mutations));
}

function build(name, clock, mutations) {
  const header = kept(headers, name, () => checkHeader(name, readSource(name)));
  const { included, text } = sourceWithIncludes(name, clock);
  const changed = mutations.reduce(
    (lua, { cure, change }) => (cure ? changeAt('lua', lua, cure, change) : lua),
    text,
  );
  const flags = mutations.some((one) => one.flags === false) ? '' : header.flags;
  const lua = `${flags ? `#!lua flags=${flags}` : '#!lua'}\n${strip(changed)}`;
  checkIncludes(name, included, lua);
  return { lua, sha: shaOf(lua) };
}

/**
 * A script and what it includes, comments and all: the libraries that stand before its first statement first, each
 * other one where it is named.
 */
export function sourceWithIncludes(name, clock) {
  const source = readSource(name);
  const body = bodyOf(source);
  const head = source.slice(0, source.length - body.length);
  const first = namedBy('include', head);
  // A script without a clock of its own still has to take the test clock's argument off.
  if (clock === 'test' && !first.includes('now')) first.unshift('now');
  const textOf = (part) =>
    read(`lib/${part === 'now' && clock === 'test' ? 'now.test' : part}.lua`);
  const inPlace = body.replace(/^ *--- @include .+$/gm, (line) =>
    namedBy('include', line).map(textOf).join('\n'),
  );
  const included = [...first, ...namedBy('include', body)];
  if (new Set(included).size < included.length) {
    throw new Error(`lua/${name}.lua includes a library twice`);
  }
  return { included, text: [...first.map(textOf), head, inPlace].join('\n') };
}
