// Reads lua/*.lua: parses the header of each script, resolves its includes (one level, from
// lua/lib), checks that header and body agree, and strips the comments. Used by the generator, by
// the header test, and by the tests' own build, in which the clock can be moved.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = new URL('../lua/', import.meta.url);
const read = (name) => readFileSync(new URL(name, folder), 'utf8');

/** The text of one script as it is written, header and all. */
export const readSource = (name) => read(`${name}.lua`);

/** By this name the server knows a script. */
export const shaOf = (lua) => createHash('sha1').update(lua).digest('hex');

/** Names of all scripts, sorted. */
export const scriptNames = readdirSync(fileURLToPath(folder))
  .filter((file) => file.endsWith('.lua'))
  .map((file) => file.slice(0, -'.lua'.length))
  .sort();

/** Takes a header apart into its sections; throws when one is missing. */
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
  for (const line of header) {
    if (line.startsWith('--- ')) {
      purpose.push(line.slice(4));
      continue;
    }
    const text = line.slice(3);
    const title = /^(KEYS|ARGV|REPLIES|REPEAT|FLAGS)\b\s*(.*)$/.exec(text);
    if (title) {
      section = title[1];
      if (section in fields) fields[section] = title[2];
    } else if (section in sections && text.startsWith('  ')) {
      sections[section].push(text.slice(2));
    }
  }
  const entry = (row) => /^(\w+)(\.\.\.)?\s+(\w+)/.exec(row);
  const rows = (list) =>
    list
      .map(entry)
      .filter((match, i) => match && !list[i].startsWith(' '))
      .map(([, key, rest, type]) => ({ name: key, rest: Boolean(rest), type }));
  const replies = [...sections.REPLIES.join('\n').matchAll(/\{'(\w+)'/g)].map((m) => m[1]);
  if (!purpose.length || !replies.length || !fields.REPEAT || fields.FLAGS === undefined) {
    throw new Error(`lua/${name}.lua: the header lacks a purpose, REPLIES, REPEAT or FLAGS`);
  }
  return {
    purpose: purpose.join(' '),
    keys: rows(sections.KEYS),
    args: rows(sections.ARGV),
    replies: [...new Set(replies)],
    repeat: fields.REPEAT,
    flags: fields.FLAGS.trim(),
  };
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

/** Throws when the header promises what the body does not do, or the other way round. */
export function checkHeader(name, source) {
  const header = parseHeader(name, source);
  const body = bodyOf(source);
  const fail = (what) => {
    throw new Error(`lua/${name}.lua: ${what}`);
  };
  const expect = (table, rows, given) => {
    // A rest of arguments may be walked in place: it needs no name.
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
  const returned = new Set([...body.matchAll(/(?:return|reply =) \{\s*'(\w+)'/g)].map((m) => m[1]));
  for (const word of returned) {
    if (!header.replies.includes(word)) fail(`replies '${word}', which its header does not list`);
  }
  if (!/return \{ (verdict\b|state\.status|pushTokens)/.test(body)) {
    for (const word of header.replies) {
      if (!returned.has(word)) fail(`never replies '${word}', which its header lists`);
    }
  }
  return header;
}

const bodyOf = (source) => source.replace(/^(?:--[^\n]*\n|\n)+/, '');

const strip = (lua) =>
  lua
    .split('\n')
    .map((line) => line.replace(/^\s*--.*$/, '').trim())
    .filter(Boolean)
    .join('\n');

/**
 * Builds every script: `{ name: { lua, sha } }`.
 * @param {{ clock?: 'server' | 'test' }} [options] `test`: the clock can be moved by the caller.
 */
export function buildScripts({ clock = 'server' } = {}) {
  const scripts = {};
  for (const name of scriptNames) {
    const source = readSource(name);
    const header = checkHeader(name, source);
    const included =
      /^--- @include (.+)$/m
        .exec(source)?.[1]
        .split(',')
        .map((part) => part.trim()) ?? [];
    // A script without a clock of its own still has to take the test clock's argument off.
    if (clock === 'test' && !included.includes('now')) included.unshift('now');
    const parts = included.map((part) =>
      read(`lib/${part === 'now' && clock === 'test' ? 'now.test' : part}.lua`),
    );
    const shebang = header.flags ? `#!lua flags=${header.flags}` : '#!lua';
    const lua = [shebang, ...parts.map(strip), strip(bodyOf(source))].join('\n');
    scripts[name] = { lua, sha: shaOf(lua) };
  }
  return scripts;
}
