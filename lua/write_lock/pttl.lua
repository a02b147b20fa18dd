-- How long the lock stays written without further renewal.
-- KEYS[1]  the lock's name: hash 'mode' -> 'read' or 'write', reader -> count, "<writer>:write" -> count
-- Returns  the remaining time in ms; -1: a key without time to live; -2: nobody writes
-- Clock    Redis' own key expiry only
-- Effects  none; a key of another type is an error (WRONGTYPE)
if #KEYS ~= 1 or #ARGV ~= 0 then
    return redis.error_reply('ERR redislock: bad arguments to pttl')
end
--include parts/from_master.lua
if redis.call('HGET', KEYS[1], 'mode') == 'write' then
    return fromMaster(redis.call('PTTL', KEYS[1]))
end
return fromMaster(-2)
