-- How many permits are free and how many are taken, after permits whose leases are over were freed. May be sent again.
-- KEYS[1]  the semaphore's name: free permits, a decimal string
-- KEYS[2]  zset of permits taken: id -> end of its lease, epoch ms
-- ARGV[1]  channel that waiters listen to
-- Returns  {free, taken}
-- Clock    the server's TIME
-- Effects  if leases are over, writes KEYS[1] and KEYS[2] and publishes the free permits; a key of another type, or a
--          string that is no number, is left alone (WRONGTYPE)
if #KEYS ~= 2 or #ARGV ~= 1 then
    return redis.error_reply('ERR redislock: bad arguments to count')
end
--include parts/from_master.lua
--include parts/publish.lua
--include parts/counter.lua
--include parts/server_time.lua
local free = tonumber(counter or '0')
local over = redis.call('ZCOUNT', KEYS[2], 0, now)
if over > 0 then
    redis.call('ZREMRANGEBYSCORE', KEYS[2], 0, now)
    free = redis.call('INCRBY', KEYS[1], over)
    if free > 0 then
        publish(ARGV[1], string.format('%.0f', free))
    end
end
return fromMaster({ free, redis.call('ZCARD', KEYS[2]) }, 'ZREM', KEYS[2], 'redislock_probe')
