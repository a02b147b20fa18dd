-- End the holds of all readers, whoever asks, and tell the waiters. May be sent again.
-- KEYS[1]  the lock's name: hash 'mode' -> 'read' or 'write', reader -> count, "<writer>:write" -> count
-- ARGV[1]  one of the readers to end, as holder.lua returned it
-- ARGV[2]  channel that waiters listen to
-- Returns  1: freed; 0: that reader does not read
-- Clock    none
-- Effects  deletes KEYS[1] and publishes '0' on ARGV[2]; hold keys end with their leases; a key that is no read/write
--          lock is left alone (WRONGTYPE)
if #KEYS ~= 1 or #ARGV ~= 2 or ARGV[1] == '' then
    return redis.error_reply('ERR redislock: bad arguments to force_unlock')
end
--include parts/from_master.lua
--include parts/publish.lua
--include parts/read_write_hold.lua
if mode ~= 'read' or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    return fromMaster(0)
end
--include parts/free.lua
publish(ARGV[2], '0')
return 1
