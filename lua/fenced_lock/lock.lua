-- Acquire the lock for a holder, with a new token, or move the holder's count to a nested level. May be sent again: it
-- sets states, never adds, and returns the same token again.
-- KEYS[1]  the lock's name: hash holder -> hold count
-- KEYS[2]  the last token, a decimal string without a time to live: it must outlast every holder
-- ARGV[1]  holder, "<client uuid>:<number>"
-- ARGV[2]  lease in ms, 10 .. 2592000000
-- ARGV[3]  hold count to set, 1 (outermost) .. 2147483647
-- Returns  {token}: the holder has the lock with that count; the token is a decimal string
--          -3: nested (count > 1), but the holder's field is gone: lost
--          otherwise {the key's remaining time in ms (-1: a key without time to live), the holder}: held by another;
--          nil for a holder where the hash has several
-- Clock    the server's TIME in microseconds, so that tokens still grow after a fail-over that lost the last one
-- Effects  writes KEYS[2] first, then KEYS[1] and its time to live, which is never shortened (a foreign PERSIST is
--          undone); a key of another type is left alone (WRONGTYPE), and so is a read/write lock
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local lease = tonumber(string.match(ARGV[2] or '', '^[1-9]%d*$'))
local count = tonumber(string.match(ARGV[3] or '', '^[1-9]%d*$'))
if #KEYS ~= 2 or #ARGV ~= 3 or ARGV[1] == ''
    or not lease or lease < 10 or lease > 2592000000 or not count or count > 2147483647 then
    return redis.error_reply('ERR redislock: bad arguments to lock')
end
--include parts/from_master.lua
--include parts/server_time.lua
-- The next token: greater than the last one and than the time.
local function nextToken()
    local micros = time[1] .. string.format('%06d', tonumber(time[2]))
    local last = redis.call('GET', KEYS[2]) or '0'
    -- as text: a number above 2^53 is not exact in Lua; the server's own counting is
    if #last > #micros or #last == #micros and last >= micros then
        redis.call('INCR', KEYS[2])
    else
        redis.call('SET', KEYS[2], micros)
    end
    return redis.call('GET', KEYS[2])
end
local left = redis.call('PTTL', KEYS[1])
if left == -2 and count == 1 then
    local token = nextToken()
    --include parts/first_hold.lua
    return { token }
end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    local holder
    --include parts/only_holder.lua
    if count > 1 then
        return fromMaster(-3)
    end
    return fromMaster({ left, holder })
end
--include parts/raise_count.lua
-- nobody else can have raised the token while this holder has the lock
return { redis.call('GET', KEYS[2]) or nextToken() }
