-- Acquire the lock for a holder, or move the holder's count to a nested level. May be sent again: it sets states, and
-- never adds.
-- KEYS[1]  the lock's name: hash holder -> hold count
-- ARGV[1]  holder, "<client uuid>:<number>"
-- ARGV[2]  lease in ms, 10 .. 2592000000
-- ARGV[3]  hold count to set, 1 (outermost) .. 2147483647
-- Returns  nil: the holder has the lock with that count
--          -3: nested (count > 1), but the holder's field is gone: lost
--          otherwise {the key's remaining time in ms (-1: a key without time to live), the holder}: held by another;
--          nil for a holder where the hash has several
-- Clock    Redis' own key expiry only
-- Effects  writes KEYS[1] and its time to live, which is never shortened (a foreign PERSIST is undone); a key of
--          another type is left alone (WRONGTYPE), and so is a read/write lock
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local lease = tonumber(string.match(ARGV[2] or '', '^[1-9]%d*$'))
local count = tonumber(string.match(ARGV[3] or '', '^[1-9]%d*$'))
if #KEYS ~= 1 or #ARGV ~= 3 or ARGV[1] == ''
    or not lease or lease < 10 or lease > 2592000000 or not count or count > 2147483647 then
    return redis.error_reply('ERR redislock: bad arguments to lock')
end
--include parts/from_master.lua
local left = redis.call('PTTL', KEYS[1])
if left == -2 and count == 1 then
    --include parts/first_hold.lua
    return nil
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
return nil
