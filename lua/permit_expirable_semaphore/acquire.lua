-- Take one permit under an id, with a lease. May be sent again: an id has one permit, and its lease counts anew.
-- KEYS[1]  the semaphore's name: free permits, a decimal string
-- KEYS[2]  zset of permits taken: id -> end of its lease, epoch ms; 922337203685477 for none
-- KEYS[3]  the id's tombstone: exists if the permit was given up
-- ARGV[1]  id, 16 bytes
-- ARGV[2]  lease in ms, 10 .. 2592000000; 0: non-expiring
-- ARGV[3]  channel that waiters listen to
-- Returns  nil: granted; otherwise how long until the first lease is over, in ms; -1: not known, or the id was given up
-- Clock    the server's TIME
-- Effects  frees the permits whose leases are over and publishes how many are free then; writes KEYS[1] and KEYS[2];
--          KEYS[2] gets the time to live of KEYS[1]; a key of another type, or a string that is no number, is left
--          alone (WRONGTYPE)
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local lease = tonumber(string.match(ARGV[2] or '', '^%d+$'))
if #KEYS ~= 3 or #ARGV ~= 3 or #ARGV[1] ~= 16
    or not lease or lease > 0 and lease < 10 or lease > 2592000000 then
    return redis.error_reply('ERR redislock: bad arguments to acquire')
end
--include parts/from_master.lua
--include parts/publish.lua
--include parts/counter.lua
--include parts/server_time.lua
local over = redis.call('ZCOUNT', KEYS[2], 0, now)
if redis.call('EXISTS', KEYS[3]) == 1 then
    return fromMaster(-1, 'ZREM', KEYS[2], 'redislock_probe')
end
local free = tonumber(counter or '0')
if over > 0 then
    redis.call('ZREMRANGEBYSCORE', KEYS[2], 0, now)
    free = redis.call('INCRBY', KEYS[1], over)
end
local has = redis.call('ZSCORE', KEYS[2], ARGV[1])
local granted = has or free > 0
if granted then
    if not has then
        free = redis.call('DECR', KEYS[1])
    end
    local till = lease == 0 and '922337203685477' or string.format('%.0f', now + lease)
    redis.call('ZADD', KEYS[2], till, ARGV[1])
    local left = redis.call('PTTL', KEYS[1])
    if left > 0 then
        redis.call('PEXPIRE', KEYS[2], left)
    end
end
if over > 0 and free > 0 then
    publish(ARGV[3], string.format('%.0f', free))
end
if granted then
    return nil
end
local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
if not first or tonumber(first) >= 922337203685477 then
    return fromMaster(-1, 'ZREM', KEYS[2], 'redislock_probe')
end
return fromMaster(math.max(tonumber(first) - now, 0), 'ZREM', KEYS[2], 'redislock_probe')
