-- Acquire the lock for a holder if it is its turn, or take or keep its place in the queue, or move its count to a nested
-- level. May be sent again: it sets states, never adds.
-- KEYS[1]  the lock's name: hash holder -> hold count
-- KEYS[2]  the queue: list of holders, the next one first
-- KEYS[3]  until when each of them keeps its place: sorted set holder -> ms since 1970
-- ARGV[1]  holder, "<client uuid>:<number>"
-- ARGV[2]  lease in ms, 10 .. 2592000000
-- ARGV[3]  hold count to set, 1 (outermost) .. 2147483647
-- ARGV[4]  how long the place is kept without being asked for again, in ms, 0 (takes no place) .. 2592000000
-- ARGV[5]  what the channels of waiters begin with; the rest is the holder
-- Returns  nil: the holder has the lock with that count
--          -3: nested (count > 1), but the holder's field is gone: lost
--          otherwise the time in ms after which to ask again: held by another (-1: a key without time to live), or
--          another's turn
-- Clock    the server's TIME; Redis' own key expiry
-- Effects  writes KEYS[1] and its time to live, which is never shortened (a foreign PERSIST is undone); takes who has it
--          and who stopped asking out of KEYS[2] and KEYS[3], puts in who waits; these two live 10 minutes longer than
--          the places in them. Others' places are not moved: nobody's here depends on them. Where the lock is free and it
--          is another's turn, publishes '0' for that one. A key of another type is
--          left alone (WRONGTYPE), and so is one of a read/write lock
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local lease = tonumber(string.match(ARGV[2] or '', '^[1-9]%d*$'))
local count = tonumber(string.match(ARGV[3] or '', '^[1-9]%d*$'))
local place = ARGV[4] == '0' and 0 or tonumber(string.match(ARGV[4] or '', '^[1-9]%d*$'))
if #KEYS ~= 3 or #ARGV ~= 5 or ARGV[1] == '' or not lease or lease < 10 or lease > 2592000000
    or not count or count > 2147483647 or not place or place > 2592000000 then
    return redis.error_reply('ERR redislock: bad arguments to lock')
end
--include parts/server_time.lua
--include parts/fair_queue.lua
local left = redis.call('PTTL', KEYS[1])
if left ~= -2 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
    --include parts/raise_count.lua
    return nil
end
if count > 1 then
    return -3
end
if left ~= -2 and redis.call('HEXISTS', KEYS[1], 'mode') == 1 then
    return redis.error_reply('WRONGTYPE redislock: the name is in use as a read/write lock')
end
local head, headUntil = liveHead()
if left == -2 and (not head or head == ARGV[1]) then
    --include parts/first_hold.lua
    if head then
        redis.call('LPOP', KEYS[2])
        redis.call('ZREM', KEYS[3], ARGV[1])
    end
    return nil
end
if place > 0 then
    local mine = redis.call('ZSCORE', KEYS[3], ARGV[1])
    local untilThen = now + place
    if mine then
        untilThen = math.max(untilThen, tonumber(mine))
    else
        -- Redisson takes its own allowance from everybody behind whoever it lets in: a place behind one of its waiters
        -- must last so much longer.
        local last = redis.call('LINDEX', KEYS[2], -1)
        local lastUntil = last and tonumber(redis.call('ZSCORE', KEYS[3], last) or '0') or 0
        if lastUntil > untilThen then
            untilThen = lastUntil + place
        end
        redis.call('RPUSH', KEYS[2], ARGV[1])
    end
    redis.call('ZADD', KEYS[3], string.format('%.0f', untilThen), ARGV[1])
    local live = string.format('%.0f', math.max(untilThen, headUntil or 0) - now + 600000)
    for i = 2, 3 do
        if redis.call('PTTL', KEYS[i]) < untilThen - now + 300000 then
            redis.call('PEXPIRE', KEYS[i], live)
        end
    end
end
if left == -2 then
    -- It is about to be taken, and then the holder's time will be known; or the first in the queue has died; or it sleeps: one of
    -- Redisson's that was not the first when the lock became free is told by nobody else, and would lose its place.
    redis.pcall('PUBLISH', ARGV[5] .. head, '0')
    return math.max(1, math.min(250, math.floor(headUntil - now)))
end
return left
