import { error, type Finding, ok, warning } from '../finding.js';
import { isOfDev } from './persistence.js';
import { isOlder, STATE_OF, securityState } from './releases.js';
import type { Info, Server } from './servers.js';

const OLDEST = '7.0';

function releaseOf(info: Info): { product: 'Redis' | 'Valkey'; version: string } {
  const valkey = info.text('valkey_version');
  return valkey
    ? { product: 'Valkey', version: valkey }
    : { product: 'Redis', version: info.text('redis_version') };
}

/** Checks that the servers are new enough, have the known security fixes, and are of one release. */
export async function checkVersion(servers: readonly Server[]): Promise<Finding[]> {
  const areForTrial = await Promise.all(servers.map(({ client }) => isOfDev(client)));
  const isForTrial = areForTrial.every(Boolean);
  const releases = servers.map(({ info }) => releaseOf(info));
  const names = [...new Set(releases.map(({ product, version }) => `${product} ${version}`))];
  const findings = names.map((name) => {
    const [product, version] = name.split(' ') as ['Redis' | 'Valkey', string];
    return findingOf(product, version, isForTrial);
  });
  if (names.length > 1) {
    findings.push(
      warning(
        'version',
        `the servers are of several releases: ${names.join(', ')}`,
        'bring all of them to one release; during an upgrade this is fine',
      ),
    );
  }
  return findings;
}

function findingOf(product: 'Redis' | 'Valkey', version: string, isForTrial: boolean): Finding {
  const name = `${product} ${version}`;
  if (isOlder(version, OLDEST)) {
    const advice = `install Redis ${OLDEST} or newer, or Valkey`;
    return error('version', `${name} is too old to serve Piecework`, advice);
  }
  const state = securityState(product, version);
  if (state === 'fixed') return ok('version', `${name} has the security fixes known ${STATE_OF}`);
  if (state === 'unknown')
    return ok('version', `${name}: nothing was known of its line on ${STATE_OF}`);
  if (isForTrial) return ok('version', `${name}: a server of \`piecework dev\``);
  const clients = 'such flaws range from a crash to a script that takes over the machine';
  if (state === 'ended') {
    return warning(
      'version',
      `${name}: its release line gets no more security fixes (as of ${STATE_OF}): ${clients}`,
      'upgrade to a maintained line, or make sure that your distribution patches this one; until then let only trusted clients connect',
    );
  }
  return warning(
    'version',
    `${name} lacks security fixes that ${state.to} has (as of ${STATE_OF}): ${clients}`,
    `upgrade to ${state.to} or newer, unless your distribution has patched it`,
  );
}
