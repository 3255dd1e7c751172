import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from './run-command.js';

/**
 * The package archive of the system, read without root. apt writes into a folder of ours, and uses the sources and keys
 * of the system, so signatures are verified as usual.
 */
export interface AptArchive {
  /** Fetches new package lists into our folder. False when no source could be read. */
  refresh(): Promise<boolean>;
  /** Version of a package without its epoch; undefined when the archive does not have it. */
  version(name: string): Promise<string | undefined>;
  /** The packages of shared libraries that `names` need and that are not installed. */
  missingLibraries(names: readonly string[]): Promise<string[]>;
  /** Downloads packages and unpacks them below `root`. @returns what went wrong, or undefined */
  unpack(names: readonly string[], root: string): Promise<string | undefined>;
}

/**
 * @param folder an existing folder for apt's files
 * @param lists `system`: the package lists that the system has; `own`: those that `refresh` fetches
 */
export async function aptArchive(
  folder: string,
  lists: 'system' | 'own',
  env: NodeJS.ProcessEnv,
): Promise<AptArchive> {
  const config = join(folder, `apt-${lists}.conf`);
  await mkdir(join(folder, 'cache', 'archives', 'partial'), { recursive: true });
  await mkdir(join(folder, 'lists', 'partial'), { recursive: true });
  await writeFile(config, aptConfig(folder, lists));
  // English messages, because some are parsed below.
  const options = { env: { ...env, LC_ALL: 'C' }, cwd: folder };
  const run = (tool: string, ...args: string[]) =>
    runCommand(tool, ['-c', config, ...args], options);

  return {
    async refresh() {
      // A source that cannot be reached is only a warning: the package may be in another one.
      return (await run('apt-get', 'update')).ok;
    },

    async version(name) {
      const { stdout } = await run('apt-cache', 'show', '--no-all-versions', name);
      return /^Version: (?:\d+:)?(\S+)/m.exec(stdout)?.[1];
    },

    async missingLibraries(names) {
      const { stdout } = await run('apt-cache', 'depends', ...names);
      const needed = [...stdout.matchAll(/^[ |]+(?:Pre)?Depends: (lib[a-z0-9.+-]+)/gm)];
      const libraries = new Set(needed.map((match) => match[1] ?? ''));
      // Never the C library: every system has one, and it has to match the loader of the system.
      libraries.delete('libc6');
      const present = await installedPackages([...libraries], options.env);
      return [...libraries].filter((name) => !present.has(name));
    },

    async unpack(names, root) {
      const debs = join(folder, `debs-${names[0]}`);
      await mkdir(debs, { recursive: true });
      const download = await runCommand('apt-get', ['-c', config, 'download', ...names], {
        ...options,
        cwd: debs,
      });
      if (!download.ok) return lastLine(download.stderr);
      for (const deb of await readdir(debs)) {
        const unpacked = await runCommand('dpkg-deb', ['-x', join(debs, deb), root], options);
        if (!unpacked.ok) return lastLine(unpacked.stderr);
      }
      return undefined;
    },
  };
}

async function installedPackages(
  names: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<Set<string>> {
  if (names.length === 0) return new Set();
  // biome-ignore lint/suspicious/noTemplateCurlyInString: placeholders of dpkg-query's own
  const format = ['-W', '-f', '${db:Status-Status} ${Package}\\n'];
  // Exits with 1 when a name is unknown, but prints the others.
  const { stdout } = await runCommand('dpkg-query', [...format, ...names], { env });
  return new Set([...stdout.matchAll(/^installed (\S+)$/gm)].map((match) => match[1] ?? ''));
}

function aptConfig(folder: string, lists: 'system' | 'own'): string {
  const lines = [
    `Dir::Cache "${join(folder, 'cache')}";`,
    // As root, apt would download as another user, who may not enter our folder.
    'APT::Sandbox::User "root";',
    'Acquire::Languages "none";',
    'Acquire::Retries "1";',
    'Acquire::http::Timeout "20";',
    'Acquire::https::Timeout "20";',
    // Hooks of the system are only for its own lists.
    '#clear APT::Update::Pre-Invoke;',
    '#clear APT::Update::Post-Invoke;',
    '#clear APT::Update::Post-Invoke-Success;',
  ];
  if (lists === 'own') lines.push(`Dir::State::lists "${join(folder, 'lists')}";`);
  return `${lines.join('\n')}\n`;
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}
