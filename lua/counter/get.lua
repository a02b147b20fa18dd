-- The value of a counter: permits of a semaphore, count of a latch.
-- KEYS[1]  the counter's name: a decimal string
-- Returns  the value; 0: there is no such key
-- Clock    none
-- Effects  none; a key of another type, or a string that is no number, is an error (WRONGTYPE)
if #KEYS ~= 1 or #ARGV ~= 0 then
    return redis.error_reply('ERR redislock: bad arguments to get')
end
--include parts/from_master.lua
--include parts/counter.lua
if counter then
    return fromMaster(tonumber(counter), 'SET', KEYS[1], counter, 'NX')
end
return fromMaster(0, 'DEL', KEYS[1])
