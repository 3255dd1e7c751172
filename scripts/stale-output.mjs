// Removes what was built of sources that are gone, which `tsc -b` leaves in dist: a tarball would ship it.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const packages = fileURLToPath(new URL('../packages', import.meta.url));
for (const name of readdirSync(packages)) {
  const dist = join(packages, name, 'dist');
  if (!existsSync(dist)) continue;
  for (const path of readdirSync(dist, { recursive: true })) {
    const [, source] = /^(.*?)(?:\.d\.ts|\.js)(?:\.map)?$/.exec(path) ?? [];
    if (source && !existsSync(join(packages, name, 'src', `${source}.ts`)))
      rmSync(join(dist, path));
  }
}
