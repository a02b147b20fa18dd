-- Take permits of a semaphore, all or none. May be sent again: a grant is recorded, and given once for each request.
-- KEYS[1]  the semaphore's name: free permits, a decimal string
-- KEYS[2]  the request's key: the permits it was granted; 0 when it was withdrawn
-- ARGV[1]  permits, 1 .. 2147483647
-- ARGV[2]  how long a grant is recorded, in ms
-- Returns  nil: granted; -1: too few permits are free, or the request was withdrawn
-- Clock    none
-- Effects  writes KEYS[1]; writes KEYS[2] with a time to live; a key of another type, or a string that is no number, is
--          left alone (WRONGTYPE)
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local permits = tonumber(string.match(ARGV[1] or '', '^[1-9]%d*$'))
local keep = tonumber(string.match(ARGV[2] or '', '^[1-9]%d*$'))
if #KEYS ~= 2 or #ARGV ~= 2 or not permits or permits > 2147483647 or not keep then
    return redis.error_reply('ERR redislock: bad arguments to acquire')
end
--include parts/from_master.lua
local granted = redis.call('GET', KEYS[2])
if granted then
    return fromMaster(granted == '0' and -1 or nil, 'SET', KEYS[2], granted, 'NX')
end
--include parts/counter.lua
if tonumber(counter or '0') < permits then
    return fromMaster(-1, 'DEL', KEYS[2])
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
redis.call('DECRBY', KEYS[1], ARGV[1])
return nil
