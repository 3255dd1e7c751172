// How long each script keeps the server busy in large worlds: `usec` of INFO commandstats, of one call alone (evalsha
// counts all that it calls), or the CPU time of the server's main thread where that is less, as on a busy machine;
// the least of the tries where a call can be repeated.
//
//   node test/scale/script-time.mjs [NAME …] [--scale 1] [--most-ms 10] [--json]
//
// NAME is part of a row's name. --scale 0.1 makes each world a tenth as large. Exit code 1 when a call takes longer
// than --most-ms.
import { parseArgs } from 'node:util';
import { startRedis } from '@piecework/embedded';
import Table from 'cli-table3';
import { measure, worlds } from './script-worlds.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    scale: { type: 'string', default: '1' },
    'most-ms': { type: 'string', default: '10' },
    json: { type: 'boolean', default: false },
  },
});
const chosen = worlds.filter(
  ({ name }) => positionals.length === 0 || positionals.some((part) => name.includes(part)),
);
const most = Number(values['most-ms']);
const rows = [];
for (const world of chosen) {
  const server = await startRedis({});
  try {
    rows.push(await measure(server.url, world, Number(values.scale)));
  } finally {
    await server.close();
  }
  if (!values.json) {
    const { name, size, ms, commands, detail } = rows.at(-1);
    console.error(`${name}, ${size}: ${ms.toFixed(1)} ms, ${commands} commands ${detail}`);
  }
}
if (values.json) console.log(JSON.stringify(rows));
else {
  const table = new Table({
    head: ['call', 'world', 'ms', 'commands'],
    style: { head: [], border: [] },
  });
  for (const { name, size, ms, commands } of rows)
    table.push([name, size, ms.toFixed(1), commands]);
  console.log(table.toString());
}
if (rows.some(({ ms }) => ms > most)) process.exitCode = 1;
