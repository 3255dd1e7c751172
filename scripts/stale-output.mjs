// Removes the output of deleted sources, which `tsc -b` leaves in dist and a tarball would ship.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const packages = ['packages', 'tools'].flatMap((folder) =>
  readdirSync(join(root, folder)).map((name) => join(root, folder, name)),
);
for (const at of packages) {
  const dist = join(at, 'dist');
  if (!existsSync(dist)) continue;
  for (const path of readdirSync(dist, { recursive: true })) {
    // build-page.mjs writes this folder as a whole.
    if (path.startsWith(`page${sep}`)) continue;
    // build-thread.mjs writes this file.
    if (existsSync(join(at, 'src', path.replace(/\.js$/, '.d.ts')))) continue;
    const [, source, kind] = /^(.*?)(?:\.d)?\.([cm]?)[tj]s(?:\.map)?$/.exec(path) ?? [];
    if (source && !existsSync(join(at, 'src', `${source}.${kind}ts`))) rmSync(join(dist, path));
  }
}
