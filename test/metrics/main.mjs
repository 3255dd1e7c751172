// A real Prometheus scrapes a real fleet, an exporter and a dashboard. Every expression of the Grafana dashboard has a
// value, and every alert fires and clears. Takes about two minutes.
//
//   apt-get install -y prometheus && npm run test:metrics
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startRedis } from '@piecework/embedded';
import { Piecework } from 'piecework';
import { scenarios, shortened } from './parts/alerts.mjs';
import { start, until } from './parts/fleet.mjs';
import { freePort, isInstalled, promtool, startPrometheus } from './parts/prometheus.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const HANDLERS = join(root, 'test/metrics/handlers.mjs');
const TOKEN = 'a-token-of-the-test';
const QUEUES = ['main', 'empty', 'waits', 'grows', 'leases', 'stuck', 'silent', 'drains'];

if (!isInstalled()) {
  console.error(
    'prometheus and promtool are missing: apt-get install -y prometheus, and stop its service',
  );
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), 'piecework-metrics-'));
const closings = [];
const closed = (one) => {
  closings.push(one);
  return one;
};
let failed = 0;
const verdict = (isRight, what) => {
  if (!isRight) failed += 1;
  console.log(`${isRight ? 'ok    ' : 'FAILED'} ${what}`);
};

for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, () => void closeAll().then(() => process.exit(1)));
try {
  await all();
} finally {
  await closeAll();
}
console.log(failed === 0 ? 'all is well' : `${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

/** Ends everything that was started, the last one first. */
async function closeAll() {
  for (const one of closings.splice(0).reverse()) await one.close().catch(() => {});
  rmSync(folder, { recursive: true, force: true });
}

async function all() {
  const redisA = closed(await startRedis());
  const redisB = closed(await startRedis());
  const redisC = closed(await startRedis());
  const redisOf = (queue) => ({ frozen: redisB, slow: redisC })[queue] ?? redisA;
  const awayPort = await freePort();
  const clients = new Map();
  const pw = (queue) => {
    const known = clients.get(queue);
    if (known) return known;
    const made = closed(new Piecework({ redis: redisOf(queue).url, queue }));
    clients.set(queue, made);
    return made;
  };
  const submit = (queue, id, items, options = {}) =>
    pw(queue).submit(items, { id, task: 'known', ...options });
  // Workers of the scenarios have ports of their own, which Prometheus knows from the start.
  const ports = {};
  for (const queue of [
    'leases',
    'stuck',
    'silent',
    'drains',
    'grows',
    'empty',
    'waits',
    'frozen',
    'slow',
  ])
    ports[queue] = await freePort();
  const worker = async (queue, ...flags) =>
    closed(
      await start(
        redisOf(queue).url,
        ...['worker', '--handler', HANDLERS, '--queue', queue, '--log-format', 'json'],
        ...['--metrics-port', String(ports[queue]), ...flags],
      ),
    );

  const [main, exporter, away, dashboard] = await Promise.all([
    start(
      redisA.url,
      ...['worker', '--handler', HANDLERS, '--queue', 'main', '--processes', '2'],
      ...['--log-format', 'json', '--metrics-port', '0'],
    ),
    start(redisA.url, 'exporter', '--port', '0', '--log-format', 'json', '--queues', QUEUES.join()),
    start(
      ...[`redis://127.0.0.1:${awayPort}`, 'exporter', '--port', '0', '--queue', 'away'],
      ...['--log-format', 'json'],
    ),
    start(redisA.url, 'dashboard', '--port', '0', '--queue', 'main'),
  ]);
  for (const one of [main, exporter, away, dashboard]) closed(one);
  await Promise.all([worker('frozen'), worker('slow')]);

  await submit('main', 'first', mixed(), { attempts: 2, toleratedFailures: '100%' });
  await pw('main').request('first').completion();

  for (const [what, port, headers] of [
    ['worker', main.port],
    ['exporter', exporter.port],
    ['dashboard', dashboard.port, { authorization: `Bearer ${TOKEN}` }],
  ]) {
    const page = await (await fetch(`http://127.0.0.1:${port}/metrics`, { headers })).text();
    const said = promtool(['check', 'metrics'], page);
    verdict(said === '', `promtool finds nothing wrong with the page of the ${what}${said}`);
  }
  const shipped = readFileSync(join(root, 'deploy/prometheus/alerts.yml'), 'utf8');
  promtool(['check', 'rules', join(root, 'deploy/prometheus/alerts.yml')]);

  const prometheus = closed(
    await startPrometheus(
      join(folder, 'prometheus'),
      {
        workers: { ports: [main.port, ...Object.values(ports)] },
        // A read of eight queues takes a busy machine more than a second.
        exporter: { ports: [exporter.port, away.port], seconds: 3 },
        dashboard: { ports: [dashboard.port], password: TOKEN, seconds: 3 },
      },
      shortened(shipped),
    ),
  );
  await until(
    async () => (await prometheus.query('up{job="dashboard"} == 1').catch(() => [])).length === 1,
    'Prometheus has scraped the dashboard',
  );
  await panels(prometheus, submit, (id) => pw('main').request(id).cancel());
  const names = [...shipped.matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  await alerts(prometheus, names, {
    ...{ submit, pw, worker, redisB },
    startAway: async () => closed(await startRedis({ port: awayPort, password: '' })),
    cli: {
      freeze: async (queue, ms) => {
        await redisOf(queue).kill('SIGSTOP');
        await sleep(ms);
        await redisOf(queue).kill('SIGCONT');
      },
      registered: (queue) =>
        until(
          async () => (await pw(queue).admin.workers()).length > 0,
          `a worker of ${queue} is registered`,
        ),
      running: (queue) =>
        until(async () => {
          for await (const { running } of pw(queue).admin.list()) if (running > 0) return true;
          return false;
        }, `something runs in ${queue}`),
    },
  });
}

/** Some that succeed, some that fail. */
function mixed() {
  return Array.from({ length: 60 }, (_, n) => ({ ms: n % 20, fail: n % 30 === 29 }));
}

/** Every expression of the dashboard of Grafana has a value while a fleet works. */
async function panels(prometheus, submit, cancel) {
  const { panels: all } = JSON.parse(
    readFileSync(join(root, 'deploy/grafana/piecework.json'), 'utf8'),
  );
  const expressions = all.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({
      title,
      expr: expr.replaceAll('$queue', '.*').replaceAll('$__rate_interval', '15s'),
    })),
  );
  // More than the slots take, so that something waits.
  const waiting = Array.from({ length: 4_000 }, () => ({ ms: 200 }));
  const { id } = await submit('main', 'waiting', waiting);
  let working = true;
  const work = (async () => {
    for (let n = 0; working; n++) {
      await submit('main', `busy-${n}`, mixed(), { attempts: 2, toleratedFailures: '100%' });
      await sleep(1_000);
    }
  })();
  try {
    for (const { title, expr } of expressions) {
      const found = await until(
        async () => {
          const result = await prometheus.query(expr);
          return result.some(({ value }) => value[1] !== 'NaN') && result;
        },
        `"${title}" has a value: ${expr}`,
        60_000,
      ).catch((error) => error);
      const isRight = Array.isArray(found);
      const shown = isRight
        ? found.slice(0, 3).map(({ metric, value }) => {
            const labels = Object.values(metric).join(' ');
            return `${labels && `${labels} `}${Number(Number(value[1]).toPrecision(3))}`;
          })
        : [found.message];
      verdict(isRight, `panel "${title}": ${shown.join(' · ')}`);
    }
  } finally {
    working = false;
    await work;
    await cancel(id);
  }
}

/** Each alert fires, and clears. */
async function alerts(prometheus, names, parts) {
  const played = scenarios(parts);
  for (const name of names) if (!played[name]) verdict(false, `${name}: nothing makes it fire`);
  await Promise.all(names.filter((name) => played[name]).map((name) => play(name, played[name])));

  async function play(name, { queue, fire, again, clear }) {
    const fires = async () => {
      const found = await prometheus.firing(name);
      return found.some(({ labels }) => labels.queue === queue);
    };
    try {
      await fire();
      let n = 0;
      let next = 0;
      const began = performance.now();
      await until(async () => {
        if (again && performance.now() >= next) {
          next = performance.now() + 1_000;
          await again(n++);
        }
        return fires();
      }, `${name} fires`);
      const firedMs = performance.now() - began;
      await clear();
      const cleared = performance.now();
      await until(async () => !(await fires()), `${name} clears`);
      const seconds = (ms) => (ms / 1_000).toFixed(0);
      const clearedMs = performance.now() - cleared;
      verdict(
        true,
        `${name} fired after ${seconds(firedMs)} s, cleared after ${seconds(clearedMs)} s`,
      );
    } catch (error) {
      verdict(false, error.message);
    }
  }
}
