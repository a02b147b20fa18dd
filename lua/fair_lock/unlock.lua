-- Set a holder's count to a lower value; zero frees the lock, or gives up the place in the queue, and grants the lock
-- to the next waiter or tells that waiter. May be sent again.
-- KEYS[1]  the lock's name: hash holder -> hold count
-- KEYS[2]  the queue: list of holders, the next one first
-- KEYS[3]  until when Redisson lets each waiter keep its place: sorted set holder -> ms since 1970
-- KEYS[4]  what our scripts know of the waiters, as in parts/fair_queue.lua
-- ARGV[1]  holder, "<client uuid>:<number>"
-- ARGV[2]  hold count to leave, 0 .. 2147483647
-- ARGV[3]  lease in ms that the remaining holds need at least, 1 .. 2592000000; ignored for count 0
-- ARGV[4]  what waiters' channels begin with; the holder follows
-- Returns  nil: the holder has no such lock
--          0: still held, with that count or, where it was lower already, with the lower one
--          n >= 1: freed; n - 1 subscribers were told
-- Clock    the server's TIME
-- Effects  count 0: deletes KEYS[1], or takes the holder out of KEYS[2], KEYS[3] and KEYS[4]; if the lock is free then,
--          drops waiters that stopped asking and grants the lock by grantNext() in parts/fair_queue.lua, which tells
--          the first waiter; notes Redisson's waiters in KEYS[4], and while there are any, removes the times to live of
--          KEYS[2] and KEYS[3]. Another count, and only if the holder's was higher: writes KEYS[1] and its time to
--          live, which is never shortened. A key of another type is left alone (WRONGTYPE)
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local count = ARGV[2] == '0' and 0 or tonumber(string.match(ARGV[2] or '', '^[1-9]%d*$'))
local lease = tonumber(string.match(ARGV[3] or '', '^[1-9]%d*$'))
if #KEYS ~= 4 or #ARGV ~= 4 or ARGV[1] == '' or not count or count > 2147483647
    or count > 0 and (not lease or lease > 2592000000) then
    return redis.error_reply('ERR redislock: bad arguments to unlock')
end
--include parts/from_master.lua
--include parts/publish.lua
--include parts/server_time.lua
--include parts/fair_queue.lua
--include parts/held.lua
if not held then
    local isMixed = count == 0 and noteRedissons()
    if count == 0 and redis.call('ZREM', KEYS[3], ARGV[1]) + redis.call('HDEL', KEYS[4], ARGV[1]) > 0 then
        redis.call('LREM', KEYS[2], 0, ARGV[1])
        if redis.call('EXISTS', KEYS[1]) == 0 then -- the waiter that gives up may have been told
            grantNext(ARGV[4])
        end
    end
    if isMixed then
        keepMixedQueue()
    end
    return fromMaster(nil)
end
if count > 0 then
    --include parts/lower_count.lua
    return 0
end
--include parts/free.lua
local isMixed = noteRedissons()
local _, _, _, told = grantNext(ARGV[4])
if isMixed then
    keepMixedQueue()
end
if type(told) == 'number' then
    return told + 1
end
return 1
