-- Who holds the lock.
-- KEYS[1]  the lock's name: hash holder -> hold count
-- Returns  the holder, "<client>:<number>"; nil: the lock is free
-- Clock    none
-- Effects  none; a key that is no lock of one holder is an error (WRONGTYPE)
if #KEYS ~= 1 or #ARGV ~= 0 then
    return redis.error_reply('ERR redislock: bad arguments to holder')
end
--include parts/from_master.lua
--include parts/plain_hold.lua
return fromMaster(holder)
