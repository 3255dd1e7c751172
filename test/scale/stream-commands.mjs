// What ways to free settled entries, and to hand one back, cost the server: its CPU per entry, each way inside
// one script, as in `settle`. For docs/decisions/0019. PIECEWORK_REDIS_SERVER says which server.

import { startRedis } from '@piecework/embedded';
import { Redis } from 'ioredis';

const ENTRIES = 20_000;
const ROUNDS = 3;
const PAYLOAD = JSON.stringify({ file: '/srv/data/part-000123.csv', rows: 1_000 });

const FILL = `#!lua
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('XGROUP', 'CREATE', KEYS[1], 'w', '0', 'MKSTREAM')
for i = 1, ${ENTRIES} do
  redis.call('XADD', KEYS[1], '7-' .. i, 'p', ARGV[1])
end`;

const READ = "redis.call('XREADGROUP', 'GROUP', 'w', 'a', 'COUNT', many, 'STREAMS', KEYS[1], '>')";
const ACK = "redis.call('XACK', KEYS[1], 'w', unpack(ids))";
const OWNER = "local owned = redis.call('XPENDING', KEYS[1], 'w', ids[1], ids[1], 1, 'a')[1]";
const CLAIM =
  "redis.call('XCLAIM', KEYS[1], 'w', '~', 0, ids[1], 'RETRYCOUNT', owned[4], 'JUSTID')";

/** What happens to the `ids` that were read just before. */
const SETTLES = {
  'read only': READ,
  XACK: `${READ} ${ACK}`,
  'XACK, XTRIM for each 64': `${READ} ${ACK}
    if math.floor((first - 1) / 64) < math.floor(last / 64) then
      redis.call('XPENDING', KEYS[1], 'w', '-', '+', 1)
      redis.call('XTRIM', KEYS[1], 'MINID', '~', '7-' .. last)
    end`,
  'XACK, XDEL': `${READ} ${ACK} redis.call('XDEL', KEYS[1], unpack(ids))`,
  XACKDEL: `${READ} local gone = 0
    for _, how in ipairs(redis.call('XACKDEL', KEYS[1], 'w', 'IDS', #ids, unpack(ids))) do
      if how > 0 then gone = gone + 1 end
    end`,
};
const PARKS = {
  'read only': READ,
  'its owner is looked up': `${READ} ${OWNER}`,
  'and XCLAIM': `${READ} ${OWNER} ${CLAIM}`,
  'and ZADD': `${READ} ${OWNER} ${CLAIM} redis.call('ZADD', KEYS[2], first, ids[1])`,
};

let server;
const redis = await startRedis({
  onStatus: (text) => {
    server = text;
  },
});
const client = new Redis(redis.url);
const knows = Boolean((await client.command('INFO', 'XACKDEL'))[0]);

async function cpuMicros() {
  const info = await client.info('cpu');
  const of = (kind) =>
    Number(new RegExp(`^used_cpu_${kind}_main_thread:(\\S+)`, 'm').exec(info)[1]);
  return 1e6 * (of('user') + of('sys'));
}

async function measure(title, ways, many) {
  const taken = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [way, body] of Object.entries(ways)) {
      if (way === 'XACKDEL' && !knows) continue;
      const script = `#!lua
        local many = ${many}
        for first = 1, ${ENTRIES}, many do
          local last, ids = math.min(${ENTRIES}, first + many - 1), {}
          for i = first, last do ids[#ids + 1] = '7-' .. i end
          ${body}
        end`;
      await client.eval(FILL, 2, '{s}', '{s}:due', PAYLOAD);
      const before = await cpuMicros();
      await client.eval(script, 2, '{s}', '{s}:due');
      taken[way].push(((await cpuMicros()) - before) / ENTRIES);
    }
  }
  for (const [way, each] of Object.entries(taken)) {
    const median = each.sort((a, b) => a - b)[each.length >> 1];
    console.log(`${title}  ${way.padEnd(26)} ${median?.toFixed(2) ?? 'not known here'}`);
  }
}

try {
  console.log(`${server}\nµs of CPU per entry`);
  for (const many of [1, 10, 100])
    await measure(`settle ${String(many).padStart(3)}`, SETTLES, many);
  await measure('hand back', PARKS, 1);
} finally {
  client.disconnect();
  await redis.close();
}
