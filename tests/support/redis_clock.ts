/**
 * Lets time pass for a Redis under test without waiting: every deadline, due time and expiry is set back. So cases about leases and
 * delays run at once, and no stall of the machine can make a lease run out by accident.
 *
 * @module
 */
import type { RedisServer } from "./redis_server.ts";

const SET_BACK = `
local ms = tonumber(ARGV[1])
for _, key in ipairs(redis.call('KEYS', '*')) do
  if string.find(key, ':leases$') or string.find(key, ':delayed$') then
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do redis.call('ZINCRBY', key, -ms, member) end
  end
  local left = redis.call('PTTL', key)
  if left >= 0 and left <= ms then
    redis.call('DEL', key)
  elseif left > ms then
    redis.call('PEXPIRE', key, left - ms)
  end
end`;

/** Lets `ms` milliseconds pass, for all queues on this server. */
export async function passRedisTime(server: RedisServer, ms: number): Promise<void> {
  await server.command("EVAL", SET_BACK, "0", String(Math.ceil(ms)));
}
