// Copies what all packages and tools have in common from the repository's package.json to theirs: version, addresses,
// shipped files, and the versions of each other, which are all the same. With --check it writes nothing and fails when
// one differs; with --publish it also fails while the addresses are placeholders.
// No `workspace:` ranges: `npm pack` would leave them in the tarball.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';

const root = new URL('../', import.meta.url);
const read = (file) => JSON.parse(readFileSync(file, 'utf8'));
const common = read(new URL('../package.json', import.meta.url));
const checkOnly = process.argv.includes('--check') || process.argv.includes('--publish');
/** As 'packages/worker'. */
const names = ['packages', 'tools']
  .flatMap((folder) => readdirSync(new URL(folder, root)).map((name) => `${folder}/${name}`))
  .filter((name) => existsSync(new URL(`${name}/package.json`, root)));
const ours = new Set(names.map((name) => read(new URL(`${name}/package.json`, root)).name));
const differing = [];
/** What builds a part of a package behind `tsc`. */
const BUILT_BY = {
  'packages/dashboard': 'build-page.mjs',
  'packages/protocol': 'ship-lua.mjs',
  'packages/worker': 'build-thread.mjs',
};

/** Writes a file, or with --check notes that it differs. */
function write(name, file, content) {
  const url = new URL(`${name}/${file}`, root);
  let found;
  try {
    found = readFileSync(url, 'utf8');
  } catch {}
  if (found === content) return;
  if (checkOnly) differing.push(`${name}/${file}`);
  else writeFileSync(url, content);
}

const sameVersion = (dependencies) =>
  Object.fromEntries(
    Object.entries(dependencies).map(([name, range]) => [
      name,
      ours.has(name) ? common.version : range,
    ]),
  );

/** The manifest of a package: common fields, more of them if it is published, then its own remaining fields. */
function manifestOf(name, manifest) {
  const { version, license, type, engines, author, homepage, bugs, repository } = common;
  const { name: packageName, private: hidden, description, keywords } = manifest;
  const more = BUILT_BY[name] ? ` && node ../../scripts/${BUILT_BY[name]}` : '';
  const head = { name: packageName, version, ...(hidden ? { private: true } : {}), description };
  const shared = hidden
    ? { ...head, license, type, engines }
    : {
        ...head,
        keywords,
        ...{ license, author, homepage, bugs },
        repository: { ...repository, directory: name },
        ...{ type, engines },
        // The source maps refer to the sources, so these are shipped too.
        files: ['dist', '!dist/.tsbuildinfo', 'src', ...(manifest.bin ? ['bin'] : [])],
        scripts: {
          prepack: `node ../../scripts/stale-output.mjs && tsc -b${more}`,
          prepublishOnly: 'node ../../scripts/manifests.mjs --publish',
        },
        publishConfig: { access: 'public' },
      };
  const own = Object.entries(manifest).filter(([field]) => !(field in shared));
  for (const [field, value] of own)
    shared[field] = /(?:^d|D)ependencies$/.test(field) ? sameVersion(value) : value;
  return shared;
}

const licence = readFileSync(new URL('../LICENSE', import.meta.url), 'utf8');
for (const name of names) {
  const manifest = manifestOf(name, read(new URL(`${name}/package.json`, root)));
  write(name, 'package.json', `${JSON.stringify(manifest, null, 2)}\n`);
  if (!manifest.private) write(name, 'LICENSE', licence);
}
if (differing.length > 0) {
  console.error(`not up to date with package.json; run npm run manifests: ${differing.join(', ')}`);
  process.exitCode = 1;
}
if (process.argv.includes('--publish') && new URL(common.homepage).hostname.endsWith('.example')) {
  console.error(
    'package.json names no real repository: set homepage, bugs and repository, then npm run manifests',
  );
  process.exitCode = 1;
}
