-- How long the lock stays without further renewal.
-- KEYS[1]  the lock's name: hash holder -> hold count
-- Returns  the remaining time in ms; -1: a key without time to live; -2: the lock is free
-- Clock    Redis' own key expiry only
-- Effects  none; a key of another type is an error (WRONGTYPE)
if #KEYS ~= 1 or #ARGV ~= 0 then
    return redis.error_reply('ERR redislock: bad arguments to pttl')
end
--include parts/from_master.lua
if redis.call('HLEN', KEYS[1]) == 0 then
    return fromMaster(-2)
end
return fromMaster(redis.call('PTTL', KEYS[1]))
