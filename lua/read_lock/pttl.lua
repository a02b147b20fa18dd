-- How long the lock stays read without further renewal.
-- KEYS[1]  the lock's name: hash 'mode' -> 'read' or 'write', reader -> count, "<writer>:write" -> count
-- Returns  the remaining time in ms; -1: a key without time to live; -2: nobody reads
-- Clock    Redis' own key expiry only
-- Effects  none; a key of another type is an error (WRONGTYPE)
if #KEYS ~= 1 or #ARGV ~= 0 then
    return redis.error_reply('ERR redislock: bad arguments to pttl')
end
--include parts/from_master.lua
local mode = redis.call('HGET', KEYS[1], 'mode')
if mode == 'read' or mode == 'write' and redis.call('HLEN', KEYS[1]) > 2 then
    return fromMaster(redis.call('PTTL', KEYS[1]))
end
return fromMaster(-2)
