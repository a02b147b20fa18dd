-- Take all free permits of a semaphore. May be sent again: the answer of a request is recorded.
-- KEYS[1]  the semaphore's name: free permits, a decimal string
-- KEYS[2]  the request's key: the permits it was granted; 0 also when it was withdrawn
-- KEYS[3…] keys of requests whose answers have arrived
-- ARGV[1]  how long the answer is kept, in ms
-- Returns  how many were taken, 0 or more
-- Clock    none
-- Effects  writes KEYS[1], whose time to live stays; writes KEYS[2] with a time to live; deletes KEYS[3…]; a key of
--          another type, or a string that is no number, is left alone (WRONGTYPE)
local keep = tonumber(string.match(ARGV[1] or '', '^[1-9]%d*$'))
if #KEYS < 2 or #ARGV ~= 1 or not keep then
    return redis.error_reply('ERR redislock: bad arguments to drain')
end
--include parts/from_master.lua
local answer = redis.call('GET', KEYS[2])
if answer then
    return fromMaster(tonumber(answer), 'SET', KEYS[2], answer, 'NX')
end
--include parts/counter.lua
local taken = tonumber(counter or '0') > 0 and counter or '0'
redis.call('SET', KEYS[2], taken, 'PX', ARGV[1])
if taken ~= '0' then
    redis.call('DECRBY', KEYS[1], taken)
end
for i = 3, #KEYS do
    redis.call('DEL', KEYS[i])
end
return tonumber(taken)
