/**
 * The files of deploy/ agree with each other and with the command line. `npm run test:docker` runs them, and
 * `npm run test:kubernetes` checks them against the schemas of Kubernetes.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { commonFlags } from '../../packages/cli/dist/flags/common-flags.js';
import { dashboardFlags } from '../../packages/cli/dist/flags/dashboard-flags.js';
import { exporterFlags } from '../../packages/cli/dist/flags/exporter-flags.js';
import type { Flag } from '../../packages/cli/dist/flags/flag.js';
import {
  healthFlags,
  metricsFlags,
  workerFlags,
} from '../../packages/cli/dist/flags/work-flags.js';

const deploy = fileURLToPath(new URL('../../deploy', import.meta.url));
const read = (path: string) => readFileSync(join(deploy, path), 'utf8');

interface Container {
  readonly name: string;
  readonly args: readonly string[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly securityContext: object;
  readonly startupProbe?: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly volumeMounts?: readonly { readonly name: string }[];
}
interface Probe {
  readonly httpGet?: { readonly port: string };
  readonly tcpSocket?: { readonly port: string };
}
interface Resource {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly ports?: readonly { readonly port: number }[];
    readonly ingress?: readonly { readonly ports: readonly { readonly port: number }[] }[];
    readonly podSelector?: object;
    readonly selector: { readonly matchLabels: Record<string, string> };
    readonly template: {
      readonly metadata: {
        readonly labels: Record<string, string>;
        readonly annotations?: Record<string, string>;
      };
      readonly spec: {
        readonly terminationGracePeriodSeconds?: number;
        readonly securityContext: object;
        readonly containers: readonly [Container];
        readonly volumes?: readonly { readonly name: string }[];
      };
    };
  };
}

const FLAGS: Readonly<Record<string, readonly Flag[]>> = {
  worker: [...commonFlags, ...workerFlags, ...healthFlags, ...metricsFlags],
  dashboard: [...commonFlags, ...dashboardFlags],
  exporter: [...commonFlags, ...exporterFlags],
};
/** The flags of a command line that its command does not have. */
function unknownFlags([command = '', ...args]: readonly string[]): string[] {
  const known = (FLAGS[command] ?? []).map(({ usage }) => usage.split(' ')[0]);
  const given = args
    .filter((one) => one.startsWith('--'))
    .map((one) => one.split('=')[0] as string);
  return given.filter((one) => !known.includes(one));
}
const flagOf = (args: readonly string[], flag: string) =>
  args.find((one) => one.startsWith(`${flag}=`))?.slice(flag.length + 1);

const FILES = ['worker.yaml', 'dashboard.yaml', 'exporter.yaml', 'network-policy.yaml'];
const resources = FILES.flatMap((file) =>
  parseAllDocuments(read(`kubernetes/${file}`)).map((one) => one.toJS() as Resource),
);
const deployments = resources.filter(({ kind }) => kind === 'Deployment');

describe('deploy/kubernetes', () => {
  it('lists all its files, and each of these exists', () => {
    const { resources: files, configMapGenerator } = parse(read('kubernetes/kustomization.yaml'));
    expect(files).toEqual(FILES);
    for (const file of configMapGenerator[0].files)
      expect(existsSync(join(deploy, 'kubernetes', file)), file).toBe(true);
  });

  it.each(deployments)(
    '$metadata.name: selectors, probes, ports and volumes fit together',
    (one) => {
      const { selector, template } = one.spec;
      expect(template.metadata.labels).toMatchObject(selector.matchLabels);
      const [container] = template.spec.containers;
      const { startupProbe, livenessProbe, readinessProbe } = container;
      const ports = container.ports.map(({ name }) => name);
      for (const probe of [startupProbe ?? livenessProbe, livenessProbe, readinessProbe])
        expect(ports).toContain((probe.httpGet ?? probe.tcpSocket)?.port);
      const listens =
        flagOf(container.args, '--health-port') ?? flagOf(container.args, '--port') ?? '';
      expect(container.ports.map(({ containerPort }) => String(containerPort))).toEqual([listens]);
      const volumes = (template.spec.volumes ?? []).map(({ name }) => name);
      expect((container.volumeMounts ?? []).map(({ name }) => name)).toEqual(volumes);
    },
  );

  it.each(deployments)('$metadata.name: is no root, and can write nowhere but to /tmp', (one) => {
    const { securityContext, containers } = one.spec.template.spec;
    expect(securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
    expect(containers[0].securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  it.each(deployments)('$metadata.name: the command line knows its flags', (one) => {
    expect(unknownFlags(one.spec.template.spec.containers[0].args)).toEqual([]);
  });

  it.each(['piecework-worker', 'piecework-exporter'])(
    '%s: Prometheus finds its metrics',
    (name) => {
      const [{ spec }] = deployments.filter(({ metadata }) => metadata.name === name) as [Resource];
      const { metadata, spec: pod } = spec.template;
      const [{ args }] = pod.containers;
      const port = flagOf(args, '--metrics-port') ?? flagOf(args, '--port');
      expect(metadata.annotations).toEqual({
        'prometheus.io/scrape': 'true',
        'prometheus.io/port': port,
      });
    },
  );

  it.each(deployments)('$metadata.name: a network policy lets in its port, and no other', (one) => {
    const { selector, template } = one.spec;
    const [policy, ...others] = resources.filter(
      ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === one.metadata.name,
    );
    expect(others).toEqual([]);
    expect(policy?.spec.podSelector).toEqual(selector);
    const allowed = policy?.spec.ingress?.flatMap(({ ports }) => ports.map(({ port }) => port));
    expect(allowed).toEqual(
      template.spec.containers[0].ports.map(({ containerPort }) => containerPort),
    );
  });

  it('names its image by a digest', () => {
    const { images } = parse(read('kubernetes/kustomization.yaml'));
    for (const image of images)
      expect(image).toEqual({ ...image, digest: expect.stringMatching(/^sha256:/) });
  });

  it('gives a worker longer than its drain, and a budget of its own', () => {
    const [worker] = deployments as [Resource];
    const { terminationGracePeriodSeconds = 30, containers } = worker.spec.template.spec;
    const drainMs = Number(flagOf(containers[0].args, '--drain-ms'));
    expect(terminationGracePeriodSeconds * 1_000).toBeGreaterThan(drainMs);
    const budget = resources.find(({ kind }) => kind === 'PodDisruptionBudget');
    expect(budget?.spec.selector).toEqual(worker.spec.selector);
  });
});

describe('deploy/keda', () => {
  it('asks the service of the exporter, and scales the deployment of the workers', () => {
    const { spec } = parse(read('keda/scaled-object.yaml'));
    const { hostname, port, pathname } = new URL(spec.triggers[0].metadata.url);
    const service = resources.find(
      ({ kind, metadata }) => kind === 'Service' && metadata.name === hostname,
    );
    expect(service?.spec.ports?.map((one) => String(one.port))).toEqual([port]);
    expect(pathname).toBe('/scale');
    expect(deployments.map(({ metadata }) => metadata.name)).toContain(spec.scaleTargetRef.name);
  });
});

describe('deploy/docker', () => {
  const OURS = ['worker-1', 'worker-2', 'dashboard', 'exporter'];
  const { services } = parse(read('docker/compose.yaml'), { merge: true }) as {
    services: Record<
      string,
      {
        readonly image?: string;
        readonly command?: string[];
        readonly environment?: Record<string, string>;
        readonly cap_drop?: string[];
        readonly volumes?: string[];
        readonly read_only?: boolean;
      }
    >;
  };

  it('has no token, password or image of its own: without yours nothing starts', () => {
    const { redis, dashboard } = services;
    const required = (name: string) => expect.stringMatching(new RegExp(`\\$\\{${name}:\\?`));
    expect(dashboard?.environment?.['PIECEWORK_DASHBOARD_TOKEN']).toEqual(
      required('PIECEWORK_DASHBOARD_TOKEN'),
    );
    expect(redis?.environment?.['REDISCLI_AUTH']).toEqual(required('REDIS_PASSWORD'));
    expect(String(redis?.command)).toContain('requirepass $$REDISCLI_AUTH');
    expect(redis?.image).toEqual(required('REDIS_IMAGE'));
    for (const [name, { environment, read_only }] of Object.entries(services)) {
      expect(read_only, name).toBe(true);
      if (name !== 'redis')
        expect(environment?.['REDIS_URL'], name).toEqual(required('REDIS_PASSWORD'));
    }
  });

  it('starts two workers, the dashboard, the exporter and Redis, by flags that they know', () => {
    expect(Object.keys(services)).toEqual(['redis', ...OURS, 'cli']);
    for (const name of OURS) {
      expect(unknownFlags(services[name]?.command ?? []), name).toEqual([]);
      expect(services[name]?.cap_drop, name).toEqual(['ALL']);
    }
    expect(unknownFlags(['worker', '--no-such-flag'])).toEqual(['--no-such-flag']);
  });

  it('names files that exist', () => {
    for (const one of services['worker-1']?.volumes ?? [])
      expect(existsSync(join(deploy, 'docker', one.split(':')[0] as string)), one).toBe(true);
  });
});
