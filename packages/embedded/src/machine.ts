import { readFileSync } from 'node:fs';

/** What the search for a server reads of a machine. A value, so that tests can search other machines. */
export interface Machine {
  /** Environment variables: PATH, HOME and those that begin with PIECEWORK_. */
  env: NodeJS.ProcessEnv;
  /** Text of the os-release file (`NAME=value` lines); empty on a system that has none. */
  osRelease: string;
}

/** The machine that this process runs on, with a copy of its environment. */
export function thisMachine(): Machine {
  return { env: { ...process.env }, osRelease: readOsRelease() };
}

/** A value of an os-release text, without quotes; `''` when it is absent. */
export function osReleaseValue(osRelease: string, name: string): string {
  const line = osRelease.split('\n').find((each) => each.startsWith(`${name}=`));
  return (line ?? '').slice(name.length + 1).replace(/^(["'])(.*)\1$/, '$2');
}

function readOsRelease(): string {
  for (const file of ['/etc/os-release', '/usr/lib/os-release']) {
    try {
      return readFileSync(file, 'utf8');
    } catch {
      // The second file is the fallback that os-release(5) names.
    }
  }
  return '';
}
