// A Prometheus of this machine, on loopback and a free port, with a folder of its own.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

const PROGRAM = process.env.PIECEWORK_PROMETHEUS ?? 'prometheus';
const TOOL = process.env.PIECEWORK_PROMTOOL ?? 'promtool';

/** Whether Prometheus and its tool are there. */
export const isInstalled = () =>
  [PROGRAM, TOOL].every((program) => spawnSync(program, ['--version']).status === 0);

/** Runs promtool on a file or on its input. @throws Error with what it said */
export function promtool(args, input) {
  const { status, stdout, stderr } = spawnSync(TOOL, args, { input, encoding: 'utf8' });
  if (status !== 0) throw new Error(`promtool ${args.join(' ')}: ${stdout}${stderr}`);
  return stdout + stderr;
}

export async function freePort() {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** @param targets by job: ports and, perhaps, the password of HTTP Basic, and the time between scrapes */
export async function startPrometheus(folder, targets, rules) {
  mkdirSync(folder, { recursive: true });
  const rulesFile = join(folder, 'alerts.yml');
  writeFileSync(rulesFile, rules);
  const jobs = Object.entries(targets).map(([job, { ports, password, seconds }]) => ({
    job_name: job,
    ...(seconds ? { scrape_interval: `${seconds}s`, scrape_timeout: `${seconds}s` } : {}),
    static_configs: [{ targets: ports.map((port) => `127.0.0.1:${port}`) }],
    ...(password ? { basic_auth: { username: 'prometheus', password } } : {}),
  }));
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: [rulesFile],
    scrape_configs: jobs,
  };
  const file = join(folder, 'prometheus.yml');
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(config));
  promtool(['check', 'config', file]);
  const port = await freePort();
  const child = spawn(
    PROGRAM,
    [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  const get = async (path) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    const body = await response.json();
    if (body.status !== 'success') throw new Error(`${path}: ${body.error}`);
    return body.data;
  };
  return {
    port,
    /** The series that an expression has now. */
    query: async (expr) => (await get(`/api/v1/query?query=${encodeURIComponent(expr)}`)).result,
    /** The alerts of this name that fire, by their labels. */
    firing: async (name) => {
      const { alerts } = await get('/api/v1/alerts');
      return alerts.filter(({ labels, state }) => labels.alertname === name && state === 'firing');
    },
    /** Health and last error of each target, by job. */
    targets: async () =>
      (await get('/api/v1/targets')).activeTargets.map(({ labels, health, lastError }) => ({
        ...{ job: labels.job, health, lastError },
      })),
    get log() {
      return said;
    },
    close: async () => {
      if (child.exitCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}
