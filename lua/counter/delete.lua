-- Delete a counter and what belongs to it. May be sent again: the answer of a request is recorded.
-- KEYS[1]  the counter's name: a decimal string
-- KEYS[2]  the zset of leased permits; the counter's name again where there is none
-- KEYS[3]  the request's key
-- ARGV[1]  channel on which '0' is published; '' to tell nobody
-- ARGV[2]  how long the answer is kept, in ms
-- Returns  1: deleted; 0: there was no such key
-- Clock    none
-- Effects  deletes KEYS[1] and KEYS[2]; writes KEYS[3] with a time to live; a key of another type, or a string that is
--          no number, is left alone (WRONGTYPE)
local keep = tonumber(string.match(ARGV[2] or '', '^[1-9]%d*$'))
if #KEYS ~= 3 or #ARGV ~= 2 or not keep then
    return redis.error_reply('ERR redislock: bad arguments to delete')
end
--include parts/from_master.lua
--include parts/publish.lua
local answer = redis.call('GET', KEYS[3])
if answer then
    return fromMaster(tonumber(answer), 'SET', KEYS[3], answer, 'NX')
end
--include parts/counter.lua
if KEYS[2] ~= KEYS[1] then
    redis.call('ZCARD', KEYS[2])
end
local deleted = redis.call('DEL', KEYS[1], KEYS[2]) > 0 and 1 or 0
redis.call('SET', KEYS[3], deleted, 'PX', ARGV[2])
if deleted == 1 and ARGV[1] ~= '' then
    publish(ARGV[1], '0')
end
return deleted
