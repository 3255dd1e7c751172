// A server that loses its last writes, as a failover to a replica some ms behind or a restart from a snapshot
// does: all its keys are kept at one moment, and put back at a later one. Its clients notice nothing.

const KEEP = `local kept = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  kept[#kept + 1] = key
  kept[#kept + 1] = math.max(0, redis.call('PTTL', key))
  kept[#kept + 1] = redis.call('DUMP', key)
end
return kept`;

const PUT_BACK = `redis.call('FLUSHALL')
for i = 1, #ARGV, 3 do
  redis.call('RESTORE', ARGV[i], ARGV[i + 1], ARGV[i + 2])
end
return 'OK'`;

/**
 * All keys of the server as they are now.
 * @param client of a server that belongs to the caller alone
 * @returns loses all writes since, when it is called; by a transaction, if it is given one
 */
export async function keepState(client) {
  const kept = await client.callBuffer('EVAL', KEEP, 0);
  return (by = client) => by.call('EVAL', PUT_BACK, 0, ...kept);
}
