-- Add permits to a semaphore: a release, or a change of how many there are. May be sent again: the answer is recorded.
-- KEYS[1]  the semaphore's name: free permits, a decimal string
-- KEYS[2]  the request's key
-- KEYS[3…] keys of requests whose answers have arrived
-- ARGV[1]  permits to add, -2147483647 .. 2147483647
-- ARGV[2]  1: only if the semaphore exists; 0: it is made if it does not exist
-- ARGV[3]  channel that waiters listen to
-- ARGV[4]  how long the answer is kept, in ms
-- Returns  1: added; 0: there is no such semaphore
-- Clock    none
-- Effects  writes KEYS[1], whose time to live stays; writes KEYS[2] with a time to live; deletes KEYS[3…]; publishes
--          the free permits if that may help a waiter; a key of another type, or a string that is no number, is left
--          alone (WRONGTYPE)
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local permits = tonumber(string.match(ARGV[1] or '', '^-?[1-9]%d*$'))
local keep = tonumber(string.match(ARGV[4] or '', '^[1-9]%d*$'))
if #KEYS < 2 or #ARGV ~= 4 or not permits or math.abs(permits) > 2147483647 or not keep
    or ARGV[2] ~= '0' and ARGV[2] ~= '1' then
    return redis.error_reply('ERR redislock: bad arguments to add')
end
--include parts/from_master.lua
--include parts/publish.lua
local answer = redis.call('GET', KEYS[2])
if answer then
    return fromMaster(tonumber(answer), 'SET', KEYS[2], answer, 'NX')
end
--include parts/counter.lua
local added = (counter or ARGV[2] == '0') and 1 or 0
-- DEL first, though that key is not there: Redis allows it even when out of memory, and then allows the rest.
redis.call('DEL', unpack(KEYS, 2))
local free
if added == 1 then
    free = redis.call('INCRBY', KEYS[1], ARGV[1])
end
redis.call('SET', KEYS[2], added, 'PX', ARGV[4])
if added == 1 and permits > 0 and free > 0 then
    publish(ARGV[3], string.format('%.0f', free))
end
return added
