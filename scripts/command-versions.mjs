/** Since which version of Redis there is a command, the newest first. test/flow/commands.test.ts compares it with a server. */
export const SINCE = [
  ['7.2', ['waitaof']],
  ['7.0', ['acl|dryrun', 'blmpop', 'lmpop', 'spublish', 'ssubscribe', 'sunsubscribe']],
  ['6.2', ['hrandfield', 'zmscore']],
  ['6.0', ['acl|whoami']],
  [
    '5.0',
    [
      ...['client|id', 'client|unblock', 'xack', 'xadd', 'xclaim', 'xdel', 'xgroup|create'],
      ...['xgroup|delconsumer', 'xgroup|destroy', 'xgroup|setid', 'xinfo|consumers'],
      ...['xinfo|groups', 'xinfo|stream', 'xlen', 'xpending', 'xrange', 'xreadgroup'],
      ...['xrevrange', 'xsetid', 'xtrim'],
    ],
  ],
  ['4.0', ['unlink']],
  ['3.0', ['asking', 'cluster|info', 'cluster|nodes', 'cluster|slots', 'readonly', 'wait']],
  ['2.8', ['command|info', 'hscan', 'scan']],
  ['2.6', ['client|setname', 'eval', 'evalsha', 'pexpire', 'time']],
  ['2.2', ['linsert', 'persist']],
  [
    '2.0',
    [
      ...['config|get', 'hdel', 'hexists', 'hget', 'hgetall', 'hincrby', 'hkeys', 'hlen', 'hmget'],
      ...['hset', 'hsetnx', 'hvals', 'zcount', 'zremrangebyrank'],
    ],
  ],
  ['1.2', ['zadd', 'zcard', 'zrange', 'zrem', 'zremrangebyscore', 'zscore']],
  [
    '1.0',
    [
      ...['del', 'exists', 'get', 'info', 'lindex', 'llen', 'lpop', 'lpush', 'lrange', 'lset'],
      ...['ltrim', 'mset', 'ping', 'rpush', 'sadd', 'set', 'srem', 'type', 'zrangebyscore'],
    ],
  ],
];

/** The same of options that came later than their command. */
export const OPTION_SINCE = {
  pexpire: { GT: '7.0', NX: '7.0', XX: '7.0' },
  'xgroup|setid': { ENTRIESREAD: '7.0' },
  xtrim: { MINID: '6.2' },
  zadd: { GT: '6.2', LT: '6.2' },
  zrange: { BYLEX: '6.2', BYSCORE: '6.2', LIMIT: '6.2' },
};
