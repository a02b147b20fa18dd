-- Make a counter, unless there is one. May be sent again: the answer of a request is recorded.
-- KEYS[1]  the counter's name: a decimal string
-- KEYS[2]  the request's key
-- KEYS[3…] keys of requests whose answers have arrived
-- ARGV[1]  the value, 0 .. 2147483647
-- ARGV[2]  time to live in ms, 1 .. 2592000000; 0: none
-- ARGV[3]  channel that waiters listen to
-- ARGV[4]  message, a decimal number
-- ARGV[5]  how long the answer is kept, in ms
-- Returns  1: made; 0: there is a key of that name already
-- Clock    none
-- Effects  writes KEYS[1]; writes KEYS[2] with a time to live; deletes KEYS[3…]; publishes ARGV[4] if made
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local value = tonumber(string.match(ARGV[1] or '', '^%d+$'))
local live = tonumber(string.match(ARGV[2] or '', '^%d+$'))
local keep = tonumber(string.match(ARGV[5] or '', '^[1-9]%d*$'))
if #KEYS < 2 or #ARGV ~= 5 or not value or value > 2147483647 or not live or live > 2592000000 or not keep
    or not string.match(ARGV[4], '^%d+$') then
    return redis.error_reply('ERR redislock: bad arguments to try_set')
end
--include parts/from_master.lua
--include parts/publish.lua
local answer = redis.call('GET', KEYS[2])
if answer then
    return fromMaster(tonumber(answer), 'SET', KEYS[2], answer, 'NX')
end
local made = 0
if redis.call('EXISTS', KEYS[1]) == 0 then
    made = 1
    if live > 0 then
        redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
    else
        redis.call('SET', KEYS[1], ARGV[1])
    end
end
redis.call('SET', KEYS[2], made, 'PX', ARGV[5])
for i = 3, #KEYS do
    redis.call('DEL', KEYS[i])
end
if made == 1 then
    publish(ARGV[3], ARGV[4])
end
return made
