-- End a given hold, whoever asks, and tell the waiters. May be sent again: it cannot touch the holder that comes next.
-- KEYS[1]  the lock's name: hash holder -> hold count
-- ARGV[1]  holder to end, as holder.lua returned it
-- ARGV[2]  channel that waiters listen to; '' to tell nobody
-- Returns  1: freed; 0: that holder does not have the lock
-- Clock    none
-- Effects  deletes KEYS[1] and publishes '0' on ARGV[2], if given; a key that is no lock of one holder is left alone
--          (WRONGTYPE)
if #KEYS ~= 1 or #ARGV ~= 2 or ARGV[1] == '' then
    return redis.error_reply('ERR redislock: bad arguments to force_unlock')
end
--include parts/from_master.lua
--include parts/publish.lua
--include parts/plain_hold.lua
if holder ~= ARGV[1] then
    return fromMaster(0)
end
--include parts/free.lua
if ARGV[2] ~= '' then
    publish(ARGV[2], '0')
end
return 1
