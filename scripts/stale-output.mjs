// Removes what was built of sources that are gone, which `tsc -b` leaves in dist: a tarball would ship it.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const packages = ['packages', 'tools'].flatMap((folder) =>
  readdirSync(join(root, folder)).map((name) => join(root, folder, name)),
);
for (const at of packages) {
  const dist = join(at, 'dist');
  if (!existsSync(dist)) continue;
  for (const path of readdirSync(dist, { recursive: true })) {
    const [, source] = /^(.*?)(?:\.d\.ts|\.js)(?:\.map)?$/.exec(path) ?? [];
    if (source && !existsSync(join(at, 'src', `${source}.ts`))) rmSync(join(dist, path));
  }
}
