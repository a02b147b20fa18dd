-- End a given hold, whoever asks, and grant the lock to the first waiter in the queue or tell that waiter. May be sent
-- again: it cannot touch the holder that comes next.
-- KEYS[1]  the lock's name: hash holder -> hold count
-- KEYS[2]  the queue: list of holders, the next one first
-- KEYS[3]  until when Redisson lets each waiter keep its place: sorted set holder -> ms since 1970
-- KEYS[4]  what our scripts know of the waiters, as in parts/fair_queue.lua
-- ARGV[1]  holder to end, as holder.lua returned it
-- ARGV[2]  what waiters' channels begin with; the holder follows
-- Returns  1: freed; 0: that holder does not have the lock
-- Clock    the server's TIME
-- Effects  deletes KEYS[1]; takes waiters that stopped asking out of KEYS[2], KEYS[3] and KEYS[4]; grants the lock
--          by grantNext() in parts/fair_queue.lua; notes Redisson's waiters in KEYS[4], and while there are any, removes
--          the times to live of KEYS[2] and KEYS[3]; a key that is not a lock of one holder is left alone (WRONGTYPE)
if #KEYS ~= 4 or #ARGV ~= 2 or ARGV[1] == '' then
    return redis.error_reply('ERR redislock: bad arguments to force_unlock')
end
--include parts/from_master.lua
--include parts/publish.lua
--include parts/plain_hold.lua
--include parts/server_time.lua
--include parts/fair_queue.lua
if holder ~= ARGV[1] then
    return fromMaster(0)
end
--include parts/free.lua
local isMixed = noteRedissons()
grantNext(ARGV[2])
if isMixed then
    keepMixedQueue()
end
return 1
