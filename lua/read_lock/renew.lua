-- Extend a reader's leases, if it still reads. May be sent again.
-- KEYS[1]  the lock's name: hash 'mode' -> 'read' or 'write', reader -> count, "<writer>:write" -> count
-- KEYS[2]  what the hold keys begin with: <KEYS[2]>:<reader>:rwlock_timeout:<level> is '1' as long as that level's lease
-- ARGV[1]  holder, "<client uuid>:<number>"
-- ARGV[2]  lease in ms, 10 .. 2592000000
-- Returns  1: renewed; 0: the holder no longer has the lock
-- Clock    Redis' own key expiry only
-- Effects  sets the times to live of KEYS[1] and of this reader's hold keys, never shorter than they were (a foreign
--          PERSIST is undone); a key of another type is left alone (WRONGTYPE)
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local lease = tonumber(string.match(ARGV[2] or '', '^[1-9]%d*$'))
if #KEYS ~= 2 or #ARGV ~= 2 or ARGV[1] == '' or not lease or lease < 10 or lease > 2592000000 then
    return redis.error_reply('ERR redislock: bad arguments to renew')
end
local held = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '')
if not held then
    return 0
end
-- Always a write: a server that may no longer write cannot answer "renewed". Above 2^53 a number is not exact.
local function longer(key)
    return string.format('%.0f', math.max(lease, math.min(redis.call('PTTL', key), 9007199254740991)))
end
redis.call('PEXPIRE', KEYS[1], longer(KEYS[1]))
for level = 1, held do
    local key = KEYS[2] .. ':' .. ARGV[1] .. ':rwlock_timeout:' .. string.format('%.0f', level)
    redis.call('SET', key, '1', 'PX', longer(key))
end
return 1
