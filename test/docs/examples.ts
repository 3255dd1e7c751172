/*
 * The examples of README and docs: each block of TypeScript or JavaScript becomes a module that imports what it uses
 * and does not declare, from the packages and from test/docs/given.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as embedded from '@piecework/embedded';
import * as library from 'piecework';

export const root = fileURLToPath(new URL('../../', import.meta.url));

export interface Example {
  /** As `docs/guide/time.md:14`, the line of its fence. */
  readonly place: string;
  /** Name of the module that is written for it: the one in its first line, if there is one, as `// service.ts`. */
  readonly file: string;
  readonly program: string;
}

/** All pages of Markdown that users read. */
function pages(): string[] {
  const markdown = (folder: string) =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => join(folder, name));
  const packages = readdirSync(join(root, 'packages')).map((name) => `packages/${name}/README.md`);
  return [
    ...['README.md', 'CONTRIBUTING.md', 'lua/README.md'],
    ...['docs', 'docs/guide', 'docs/decisions'].flatMap(markdown),
    ...packages.filter((path) => existsSync(join(root, path))),
  ];
}

/** Names that a file of test/docs/given exports. */
function namesGiven(name: string): string[] {
  const path = join(root, 'test/docs/given', `${name}.ts`);
  if (!existsSync(path)) return [];
  const text = readFileSync(path, 'utf8');
  const exported =
    /^export (?:declare )?(?:async )?(?:const|function\*?|class|interface|type) (\w+)/gm;
  const passedOn = /^export \{ (.*) \} from/gm;
  return [
    ...[...text.matchAll(exported)].map(([, one]) => one as string),
    ...[...text.matchAll(passedOn)].flatMap(([, list]) => (list as string).split(', ')),
  ];
}

/** Names that a block declares at its top level, or imports. */
function declared(code: string): Set<string> {
  const names = new Set<string>();
  for (const [, list = ''] of code.matchAll(/^(?:import|(?:export )?(?:const|let)) \{([^}]*)\}/gm))
    for (const one of list.split(',')) names.add(one.replace(/.*[:\s](?=\w+\s*$)/, '').trim());
  const single =
    /^(?:export )?(?:await using|using|const|let|function|class|interface|type) (\w+)/gm;
  for (const [, name = ''] of code.matchAll(single)) names.add(name);
  return names;
}

const exportsOf = (module: object) =>
  Object.keys(module).filter((name) => /^[A-Za-z]\w*$/.test(name) && name !== 'default');

/** Types that examples name without importing them. */
const TYPES = ['Handler', 'WorkerOptions'];

function moduleOf(page: string, code: string): string {
  const known = declared(code);
  const used = new Set(code.match(/(?<![.\w])[A-Za-z]\w*/g));
  const imports: string[] = [];
  const take = (from: string, names: readonly string[], type = '') => {
    const wanted = names.filter((name) => used.has(name) && !known.has(name));
    for (const name of wanted) known.add(name);
    if (wanted.length > 0) imports.push(`import ${type}{ ${wanted.join(', ')} } from '${from}';`);
  };
  const name = basename(page, '.md');
  take(`./given/${name}.js`, namesGiven(name));
  take('./given/common.js', namesGiven('common'));
  take('piecework', exportsOf(library));
  take('piecework', TYPES, 'type ');
  take('@piecework/embedded', exportsOf(embedded));
  return `${imports.join('\n')}\n${code}\nexport {};\n`;
}

/** Every block of TypeScript or JavaScript. */
export function examples(): Example[] {
  return pages().flatMap((page) => {
    const text = readFileSync(join(root, page), 'utf8');
    return [...text.matchAll(/^```(ts|js)\n(.*?)^```$/gms)].map((match) => {
      const line = text.slice(0, match.index).split('\n').length;
      const place = `${page}:${line}`;
      const [, named] = /^\/\/ ([\w.-]+\.ts)\n/.exec(match[2] as string) ?? [];
      const file = named ?? `${place.replaceAll(/[/:.]/g, '-')}.${match[1]}`;
      return { place, file, program: moduleOf(page, match[2] as string) };
    });
  });
}
