-- Set how many permits there are, free and taken together. May be sent again: the answer of a request is recorded.
-- KEYS[1]  the semaphore's name: free permits, a decimal string
-- KEYS[2]  zset of permits taken: id -> end of its lease, epoch ms
-- KEYS[3]  the request's key
-- ARGV[1]  permits, 0 .. 2147483647
-- ARGV[2]  channel that waiters listen to
-- ARGV[3]  how long the answer is kept, in ms
-- Returns  1
-- Clock    none: a permit whose lease is over counts as taken until another script frees it
-- Effects  writes KEYS[1], which becomes negative if more are taken, and whose time to live stays; writes KEYS[3] with
--          a time to live; publishes the permits if they changed; a key of another type, or a string that is no number,
--          is left alone (WRONGTYPE)
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local permits = tonumber(string.match(ARGV[1] or '', '^%d+$'))
local keep = tonumber(string.match(ARGV[3] or '', '^[1-9]%d*$'))
if #KEYS ~= 3 or #ARGV ~= 3 or not permits or permits > 2147483647 or not keep then
    return redis.error_reply('ERR redislock: bad arguments to set')
end
--include parts/from_master.lua
--include parts/publish.lua
if redis.call('EXISTS', KEYS[3]) == 1 then
    return fromMaster(1, 'SET', KEYS[3], '1', 'NX')
end
--include parts/counter.lua
-- A semaphore that is gone is made anew; the permits taken of the old one are gone with it, or still taken.
local change = permits - tonumber(counter or '0') - redis.call('ZCARD', KEYS[2])
redis.call('DEL', KEYS[3])
if not counter or change ~= 0 then
    redis.call('INCRBY', KEYS[1], string.format('%.0f', change))
end
redis.call('SET', KEYS[3], '1', 'PX', ARGV[3])
if permits > 0 and (not counter or change ~= 0) then
    publish(ARGV[2], ARGV[1])
end
return 1
