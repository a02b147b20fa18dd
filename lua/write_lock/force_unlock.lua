-- End a given writer's holds, its read holds too, whoever asks, and tell the waiters. May be sent again: it cannot
-- touch the holder that comes next.
-- KEYS[1]  the lock's name: hash 'mode' -> 'read' or 'write', reader -> count, "<writer>:write" -> count
-- ARGV[1]  writer to end, as holder.lua returned it
-- ARGV[2]  channel that waiters listen to
-- Returns  1: freed; 0: that writer does not have the lock
-- Clock    none
-- Effects  deletes KEYS[1] and publishes '1' on ARGV[2]; a key that is no read/write lock is left alone (WRONGTYPE)
if #KEYS ~= 1 or #ARGV ~= 2 or ARGV[1] == '' then
    return redis.error_reply('ERR redislock: bad arguments to force_unlock')
end
--include parts/from_master.lua
--include parts/publish.lua
--include parts/read_write_hold.lua
if mode ~= 'write' or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    return fromMaster(0)
end
--include parts/free.lua
publish(ARGV[2], '1')
return 1
