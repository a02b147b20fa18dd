-- Give one permit back by its id. May be sent again: an id has one permit.
-- KEYS[1]  the semaphore's name: free permits, a decimal string
-- KEYS[2]  zset of permits taken: id -> end of its lease, epoch ms
-- KEYS[3]  the id's tombstone
-- ARGV[1]  id, 16 bytes
-- ARGV[2]  channel that waiters listen to
-- ARGV[3]  how long copies of its acquire may still arrive, in ms; 0: none can
-- Returns  1: given back; 2: given back, but its lease was over; 0: nobody has a permit of that id
-- Clock    the server's TIME
-- Effects  writes KEYS[1] and KEYS[2]; publishes the free permits; writes KEYS[3] with ARGV[3] as its time to live,
--          unless that is 0; a key of another type, or a string that is no number, is left alone (WRONGTYPE)
local keep = tonumber(string.match(ARGV[3] or '', '^%d+$'))
if #KEYS ~= 3 or #ARGV ~= 3 or #ARGV[1] ~= 16 or not keep then
    return redis.error_reply('ERR redislock: bad arguments to release')
end
--include parts/publish.lua
--include parts/counter.lua
--include parts/server_time.lua
local till = redis.call('ZSCORE', KEYS[2], ARGV[1])
-- ZREM first: Redis allows it even when out of memory, and then allows the rest.
redis.call('ZREM', KEYS[2], ARGV[1])
if keep > 0 then
    redis.call('SET', KEYS[3], '0', 'PX', ARGV[3])
end
if not till then
    return 0
end
local free = redis.call('INCRBY', KEYS[1], 1)
if free > 0 then
    publish(ARGV[2], string.format('%.0f', free))
end
return tonumber(till) <= now and 2 or 1
