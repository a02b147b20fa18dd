-- Undo a request that took permits and for whose answer nobody waits any more; if it has not been executed, it never
-- will be. May be sent again.
-- KEYS[1]  the semaphore's name: free permits, a decimal string
-- KEYS[2]  the request's key: the permits it was granted; 0 when it was withdrawn
-- ARGV[1]  channel that waiters listen to
-- ARGV[2]  how long the withdrawal is remembered, in ms
-- Returns  how many permits were given back, 0 or more
-- Clock    none
-- Effects  writes KEYS[1], if there is one; writes KEYS[2] with a time to live; publishes the free permits
local keep = tonumber(string.match(ARGV[2] or '', '^[1-9]%d*$'))
if #KEYS ~= 2 or #ARGV ~= 2 or not keep then
    return redis.error_reply('ERR redislock: bad arguments to withdraw')
end
--include parts/publish.lua
local granted = redis.call('GET', KEYS[2]) or '0'
local free = redis.call('GET', KEYS[1])
-- DEL first: Redis allows it even when out of memory, and then allows the rest.
redis.call('DEL', KEYS[2])
redis.call('SET', KEYS[2], '0', 'PX', ARGV[2])
if granted == '0' or not free then
    return 0 -- a semaphore that was deleted is not made again
end
free = redis.call('INCRBY', KEYS[1], granted)
if free > 0 then
    publish(ARGV[1], string.format('%.0f', free))
end
return tonumber(granted)
