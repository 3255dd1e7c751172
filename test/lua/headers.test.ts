import { describe, expect, it } from 'vitest';
import {
  buildScripts,
  checkHeader,
  checkLibrary,
  libraryNames,
  readLibrary,
  readSource,
  scriptNames,
} from '../../scripts/lua-source.mjs';

describe('the header of a script', () => {
  for (const name of scriptNames) {
    it(`${name}: says what the body does`, () => {
      expect(checkHeader(name, readSource(name)).purpose).toMatch(/\.$/);
    });
  }

  // Each row takes one header apart in one way.
  const doctored: Record<string, { script: string; from: string | RegExp; to: string }> = {
    'two keys in the wrong order': {
      script: 'schedule-tend',
      from: /(-- {3}open .*\n)(-- {3}agenda .*\n)/,
      to: '$2$1',
    },
    'a key that the body does not take': {
      script: 'schedule-tend',
      from: '-- ARGV',
      to: '--   extra   hash  nothing\n-- ARGV',
    },
    'a key less than the body takes': { script: 'tend', from: /-- {3}progress .*\n/, to: '' },
    'two arguments in the wrong order': {
      script: 'take',
      from: /(-- {3}generation .*\n)(-- {3}worker .*\n)/,
      to: '$2$1',
    },
    'an argument that the body does not take': {
      script: 'seal',
      from: '-- REPLIES',
      to: '--   extra       int     nothing\n-- REPLIES',
    },
    'an argument less than the body takes': {
      script: 'renew',
      from: /-- {3}leaseMs .*\n/,
      to: '',
    },
    'a reply that the body gives and the header lacks': {
      script: 'renew',
      from: /-- {3}\{'lost'\}.*\n/,
      to: '',
    },
    'a reply that the body never gives': {
      script: 'renew',
      from: "--   {'lost'}",
      to: "--   {'tired'}  never\n--   {'lost'}",
    },
    'a reply with one value less than the body gives': {
      script: 'append',
      from: ', epoch: int, priority: text',
      to: ', epoch: int',
    },
    'a reply with one value more than the body gives': {
      script: 'append',
      from: "{'gap', sent: int}",
      to: "{'gap', sent: int, missing: int}",
    },
    'a value of a reply without a type': { script: 'append', from: 'sent: int', to: 'sent' },
    'a type that there is not': { script: 'append', from: 'sent: int', to: 'sent: float' },
    'no word on what a repeat does': { script: 'push', from: /-- REPEAT.*\n/, to: '' },
    'no flags': { script: 'push', from: /-- FLAGS.*\n/, to: '' },
  };
  for (const [what, { script, from, to }] of Object.entries(doctored)) {
    it(`is refused with ${what}`, () => {
      const source = readSource(script);
      const changed = source.replace(from, to);
      expect(changed).not.toBe(source);
      expect(() => checkHeader(script, changed)).toThrow(`lua/${script}.lua`);
    });
  }
});

describe('a library', () => {
  for (const name of libraryNames) {
    it(`${name}: says what it needs of others, and of the script that includes it`, () => {
      checkLibrary(name);
    });
  }

  const doctored: Record<string, { library: string; from: string | RegExp; to: string }> = {
    'without saying what it needs': { library: 'state', from: /--- @needs .*\n/, to: '' },
    'that says it needs what it does not': {
      library: 'state',
      from: '--- @needs now',
      to: '--- @needs now, books',
    },
    'that does not say what it needs of its script': {
      library: 'successes',
      from: /--- @host .*\n/,
      to: '',
    },
  };
  for (const [what, { library, from, to }] of Object.entries(doctored)) {
    it(`is refused ${what}`, () => {
      const source = readLibrary(library);
      const changed = source.replace(from, to);
      expect(changed).not.toBe(source);
      expect(() => checkLibrary(library, changed)).toThrow(`lua/lib/${library}.lua`);
    });
  }
});

describe('the body of a script', () => {
  for (const name of scriptNames) {
    it(`${name}: uses its names, not KEYS and ARGV, once it has given them`, () => {
      const body = readSource(name).replace(/^(?:--[^\n]*\n|\n)+/, '');
      const [, ...rest] = body.split(/\n\n/);
      // A rest of arguments may be walked in place.
      const code = rest
        .join('\n\n')
        .replaceAll(/#ARGV|ARGV\[[^\]]*i[^\]]*\]|unpack\(ARGV, \d\)/g, '');
      expect(code).not.toMatch(/\b(KEYS|ARGV)\b/);
    });
  }

  it('takes the time from now() alone', () => {
    for (const name of scriptNames) {
      expect(readSource(name), name).not.toMatch(/['"]TIME['"]|\bos\./i);
    }
    const { lua } = buildScripts()['tick'];
    expect(lua.match(/'TIME'/g)).toHaveLength(1);
  });
});
