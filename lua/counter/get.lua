-- The value of a counter: permits of a semaphore, count of a latch.
-- KEYS[1]  the counter's name: a decimal string
-- Returns  the value; 0: there is no such key
-- Clock    none
-- Effects  none; a key of another type, or another string, is an error (WRONGTYPE)
if #KEYS ~= 1 or #ARGV ~= 0 then
    return redis.error_reply('ERR redislock: bad arguments to get')
end
local value = redis.call('GET', KEYS[1]) or '0'
if not string.match(value, '^-?%d+$') then
    return redis.error_reply('WRONGTYPE redislock: the key is no counter')
end
return tonumber(value)
