-- Acquire the lock for a holder whose turn it is, or take or keep its place in the queue, or set its count to a nested
-- level. May be sent again: it sets states, never adds.
-- KEYS[1]  the lock's name: hash holder -> hold count
-- KEYS[2]  the queue: list of holders, the next one first
-- KEYS[3]  until when Redisson lets each waiter keep its place: sorted set holder -> ms since 1970
-- KEYS[4]  what our scripts know of the waiters, as in parts/fair_queue.lua
-- ARGV[1]  holder, "<client uuid>:<number>"
-- ARGV[2]  lease in ms, 10 .. 2592000000
-- ARGV[3]  hold count to set, 1 (outermost) .. 2147483647
-- ARGV[4]  how long the place is kept until the holder asks again, in ms, 0 (takes no place) .. 2592000000
-- ARGV[5]  what waiters' channels begin with; the holder follows
-- ARGV[6]  the number of this request among the holder's requests, 1 .. 4294967295, if its client listens on a channel
--          of its own: then a release may grant the lock to the place; 0: a release only tells the waiter, on the
--          holder's channel
-- Returns  nil: the holder has the lock with that count
--          -3: nested (count > 1), but the holder's field is gone: lost
--          otherwise {the time in ms after which to ask again (-1: a key without time to live), the holder, 1 or 0}:
--          held by another, or another's turn; nil for the holder if it is another's turn, or if the hash has several;
--          1: some that are ahead can tell the next waiter on the holder's channel only: Redisson's, or holders by
--          another kind of lock
-- Clock    the server's TIME; Redis' own key expiry
-- Effects  writes KEYS[1] and its time to live, which is never shortened (a foreign PERSIST is undone); takes a waiter
--          that gets the lock, and those that stopped asking, out of KEYS[2], KEYS[3] and KEYS[4]; adds one that waits;
--          notes Redisson's waiters in KEYS[4], but does not move their places. These three keys live 10 minutes longer
--          than the places in them, KEYS[2] and KEYS[3] without an end while a waiter of Redisson's is queued. If the
--          lock is free and it is another's turn, grants the lock by grantNext() in parts/fair_queue.lua. A key of
--          another type is left alone (WRONGTYPE), and so is a read/write lock
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local lease = tonumber(string.match(ARGV[2] or '', '^[1-9]%d*$'))
local count = tonumber(string.match(ARGV[3] or '', '^[1-9]%d*$'))
local place = ARGV[4] == '0' and 0 or tonumber(string.match(ARGV[4] or '', '^[1-9]%d*$'))
local request = ARGV[6] == '0' and 0 or tonumber(string.match(ARGV[6] or '', '^[1-9]%d*$'))
if #KEYS ~= 4 or #ARGV ~= 6 or ARGV[1] == '' or not lease or lease < 10 or lease > 2592000000
    or not count or count > 2147483647 or not place or place > 2592000000 or not request or request > 4294967295 then
    return redis.error_reply('ERR redislock: bad arguments to lock')
end
--include parts/from_master.lua
--include parts/publish.lua
--include parts/server_time.lua
--include parts/fair_queue.lua
local left = redis.call('PTTL', KEYS[1])
if left ~= -2 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
    --include parts/raise_count.lua
    return nil
end
if count > 1 then
    return fromMaster(-3)
end
local holder = false
if left ~= -2 then
    --include parts/only_holder.lua
end
local isMixed = noteRedissons(place > 0 and ARGV[1])
local head = liveHead(left == -2)
if left == -2 and (not head or head == ARGV[1]) then
    --include parts/first_hold.lua
    if head then
        leave(head)
    end
    if isMixed then
        keepMixedQueue()
    end
    return nil
end
if place > 0 then
    local _, _, came = ours(ownRecord)
    local mark = string.match(ARGV[5], '^[>*]') and '>' or ''
    if redis.call('ZADD', KEYS[3], string.format('%.0f', now + place + clocks), ARGV[1]) == 1 then
        redis.call('RPUSH', KEYS[2], ARGV[1])
        came = now
    end
    local record = recordOf(now + place, place, came or now, request > 0 and lease, ARGV[6] .. mark)
    redis.call('HSET', KEYS[4], ARGV[1], record)
    if isMixed then
        -- When Redisson lets one of its own waiters in, it takes an allowance off the times of all behind that waiter,
        -- and then compares what is left with the clock of its machine.
        local ahead
        ahead, isMixed = allowancesAhead(ARGV[1])
        if ahead > 0 then
            redis.call('ZADD', KEYS[3], string.format('%.0f', now + place + clocks + ahead), ARGV[1])
        end
    end
    for i = isMixed and 4 or 2, 4 do
        if redis.call('PTTL', KEYS[i]) < place + clocks + 300000 then
            redis.call('PEXPIRE', KEYS[i], string.format('%.0f', place + clocks + 600000))
        end
    end
end
if isMixed then
    keepMixedQueue()
end
if left == -2 then
    -- Either the first waiter is about to take the lock, and then the holder's time will be known; or it has died; or
    -- it sleeps: a waiter of Redisson's that was not the first when the lock became free is told by nobody else, and
    -- would lose its place.
    local first, firstUntil, lasts = grantNext(ARGV[5])
    holder = lasts > 0 and first
    left = holder and lasts or math.max(1, math.min(250, math.floor(firstUntil - now)))
else
    isMixed = isMixed or not holder or not isNameOfOurs(holder)
end
local answer = { left, holder, isMixed and 1 or 0 }
return place > 0 and answer or fromMaster(answer) -- a place is a write
