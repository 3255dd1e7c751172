/**
 * The folders of the sources, and who may import whom: docs/architecture.md shows them.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The rooms of a package, from the lowest floor to the highest. What lies beside them may import all. */
const floors: Record<string, readonly string[]> = {
  protocol: ['common', 'contract', 'redis', 'scripts', 'calls', 'upkeep'],
  producer: ['items', 'seal', 'create', 'open'],
  notifier: ['waiting', 'results', 'failures', 'progress', 'events'],
  worker: ['handler', 'report', 'lease', 'shared', 'pull', 'fetch', 'request'],
  queues: ['metrics', 'timed', 'ids'],
  cli: [
    'terminal',
    'json',
    'input',
    'output',
    'folder',
    'exec',
    'work',
    'flags',
    'processes',
    'run',
    'top',
    'watch',
    'example',
    'commands',
  ],
  metrics: ['definitions', 'workers', 'fleet', 'queues'],
  views: ['shape', 'data'],
  dashboard: ['shape', 'security', 'data', 'http'],
  piecework: ['processes', 'operate', 'api', 'delayed'],
  chaos: [
    ...['contract', 'roles', 'attacked', 'faults', 'evidence', 'judge', 'growth', 'report'],
    ...['cluster', 'sentinel', 'attack'],
  ],
};
// A folder may be left of a package that moved.
const packages = readdirSync(join(root, 'packages')).filter((name) =>
  existsSync(join(root, 'packages', name, 'package.json')),
);

const linesOf = (path: string) => readFileSync(path, 'utf8').trimEnd().split('\n').length;

/** Each source file of a package and the files of the same package that it imports, as `room/file.ts`. */
function importsOf(folder: string): Map<string, readonly string[]> {
  const src = join(root, folder, 'src');
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' });
  const found = new Map<string, readonly string[]>();
  for (const file of files.filter((path) => path.endsWith('.ts'))) {
    const text = readFileSync(join(src, file), 'utf8');
    const named = [...text.matchAll(/(?:from|import\(|import)\s*'(\.[^']+)\.js'/g)];
    found.set(
      file,
      named.map(([, path]) => {
        const at = normalize(join(dirname(file), path as string));
        // A module that only the build writes.
        return files.includes(`${at}.d.ts`) ? `${at}.d.ts` : `${at}.ts`;
      }),
    );
  }
  return found;
}

/** A way from a file back to itself, if there is one. */
function circleIn(imports: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]): string[] => {
    if (way.includes(file)) return [...way.slice(way.indexOf(file)), file];
    if (done.has(file)) return [];
    for (const next of imports.get(file) ?? []) {
      const circle = visit(next, [...way, file]);
      if (circle.length > 0) return circle;
    }
    done.add(file);
    return [];
  };
  for (const file of imports.keys()) {
    const circle = visit(file, []);
    if (circle.length > 0) return circle;
  }
  return [];
}

const folders = [...packages.map((name) => `packages/${name}`), 'tools/bench', 'tools/chaos'];

describe.each(folders)('%s', (folder) => {
  const name = basename(folder);
  const imports = importsOf(folder);

  it('imports in no circle', () => {
    expect([...imports.values()].flat().every((path) => imports.has(path))).toBe(true);
    expect(circleIn(imports)).toEqual([]);
  });

  it.runIf(floors[name])('imports only from its own floor and those below', () => {
    const order = floors[name] as readonly string[];
    const rooms = [...imports.keys()].flatMap((path) => path.split('/').slice(0, -1).slice(0, 1));
    expect([...new Set(rooms)].sort()).toEqual([...order].sort());
    const floorOf = (path: string) => {
      const floor = order.indexOf(path.split('/')[0] as string);
      return floor < 0 ? order.length : floor;
    };
    const up = [...imports].flatMap(([from, to]) =>
      to.filter((path) => floorOf(path) > floorOf(from)).map((path) => `${from} → ${path}`),
    );
    expect(up).toEqual([]);
  });
});

it('a circle is found', () => {
  const imports = new Map([
    ['a.ts', ['b.ts']],
    ['b.ts', ['c.ts', 'd.ts']],
    ['c.ts', []],
    ['d.ts', ['b.ts']],
  ]);
  expect(circleIn(imports)).toEqual(['b.ts', 'd.ts', 'b.ts']);
});

it('no source file is longer than 400 lines', () => {
  const folders = [
    ...packages.map((name) => `packages/${name}/src`),
    ...['bench', 'chaos'].map((name) => `tools/${name}/src`),
    ...['lua', 'scripts', 'examples'],
  ];
  const long = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => /\.(ts|lua|mjs)$/.test(path) && !/generated|node_modules/.test(path))
      .map((path) => ({ path: `${folder}/${path}`, lines: linesOf(join(root, folder, path)) }))
      .filter(({ lines }) => lines > 400),
  );
  expect(long).toEqual([]);
});

describe('docs/architecture.md', () => {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
  const tree = page.slice(page.indexOf('## The tree'), page.indexOf('## Why two sides'));

  it('lists every package and its folders, from the lowest to the highest', () => {
    for (const folder of folders) {
      const name = basename(folder);
      const from = tree.indexOf(`- \`${folder}/src\``);
      expect(from, name).toBeGreaterThan(-1);
      const [, ...rows] = tree.slice(from).split('\n');
      const end = rows.findIndex((row) => row.startsWith('- '));
      const listed = rows.slice(0, end).flatMap((row) => /^ {2}- `(\w+)`/.exec(row)?.[1] ?? []);
      expect(listed, name).toEqual(floors[name] ?? []);
    }
  });

  it('names files that are there', () => {
    const named = [...page.matchAll(/`((?:packages\/)?(\w+)\/src\/[\w/.-]+\.ts)`/g)];
    expect(named.length).toBeGreaterThan(15);
    for (const [, path = ''] of named) {
      const whole = path.startsWith('packages/') ? path : `packages/${path}`;
      expect(existsSync(join(root, whole)), path).toBe(true);
    }
  });
});
