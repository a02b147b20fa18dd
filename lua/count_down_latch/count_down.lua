-- Count a latch down by one; at zero it is open and its key is gone. May be sent again: each request counts once.
-- KEYS[1]  the latch's name: the count, a decimal string
-- KEYS[2]  the request's key
-- KEYS[3…] keys of requests whose answers have arrived
-- ARGV[1]  channel that waiters listen to
-- ARGV[2]  how long the answer is kept, in ms
-- Returns  the count that is left; 0: the latch is open, perhaps since before
-- Clock    none
-- Effects  writes or deletes KEYS[1]; writes KEYS[2] with a time to live; deletes KEYS[3…]; publishes '0' when the
--          count comes to zero; a key of another type, or a string that is no number, is left alone (WRONGTYPE)
local keep = tonumber(string.match(ARGV[2] or '', '^[1-9]%d*$'))
if #KEYS < 2 or #ARGV ~= 2 or not keep then
    return redis.error_reply('ERR redislock: bad arguments to count_down')
end
--include parts/from_master.lua
--include parts/publish.lua
local answer = redis.call('GET', KEYS[2])
if answer then
    return fromMaster(tonumber(answer), 'SET', KEYS[2], answer, 'NX')
end
--include parts/counter.lua
-- DEL first, though that key is not there: Redis allows it even when out of memory, and then allows the rest.
redis.call('DEL', unpack(KEYS, 2))
local left = 0
if counter and tonumber(counter) > 1 then
    left = redis.call('DECR', KEYS[1])
elseif counter then
    redis.call('DEL', KEYS[1])
end
-- Recorded even if there was nothing to count: a late copy must not count for the latch that comes next.
redis.call('SET', KEYS[2], left, 'PX', ARGV[2])
if counter == '1' then
    publish(ARGV[1], '0')
end
return left
