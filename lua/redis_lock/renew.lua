-- Extend a holder's lease, if it still has the lock. May be sent again.
-- KEYS[1]  the lock's name: hash holder -> hold count
-- ARGV[1]  holder, "<client uuid>:<number>"
-- ARGV[2]  lease in ms, 10 .. 2592000000
-- Returns  1: renewed; 0: the holder no longer has the lock
-- Clock    Redis' own key expiry only
-- Effects  sets the time to live of KEYS[1], never shorter than it was (a foreign PERSIST is undone); a key of
--          another type is left alone (WRONGTYPE)
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local lease = tonumber(string.match(ARGV[2] or '', '^[1-9]%d*$'))
if #KEYS ~= 1 or #ARGV ~= 2 or ARGV[1] == '' or not lease or lease < 10 or lease > 2592000000 then
    return redis.error_reply('ERR redislock: bad arguments to renew')
end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    return 0
end
-- Always a write: a server that may no longer write cannot answer "renewed". Above 2^53 a number is not exact.
local left = math.min(redis.call('PTTL', KEYS[1]), 9007199254740991)
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(lease, left)))
return 1
