-- Extend the leases of several holders, each of a lock of its own, if it still has that. May be sent again.
-- KEYS[i]      a lock's name: hash holder -> hold count; at most 1000
-- ARGV[2i-1]   its holder, "<client uuid>:<number>"
-- ARGV[2i]     its lease in ms, 10 .. 2592000000
-- Returns  a character for each lock. 1: renewed; 0: the holder no longer has the lock; w: a key of another type has its name
-- Clock    Redis' own key expiry only
-- Effects  sets the times to live of the keys, never shorter than they were (a foreign PERSIST is undone); a key of
--          another type is left alone
if #KEYS == 0 or #KEYS > 1000 or #ARGV ~= 2 * #KEYS then
    return redis.error_reply('ERR redislock: bad arguments to renew')
end
local leases = {} -- most are the same
for i = 1, #KEYS do
    local text = ARGV[2 * i]
    if not leases[text] then
        -- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
        local lease = tonumber(string.match(text, '^[1-9]%d*$'))
        if not lease or lease < 10 or lease > 2592000000 then
            return redis.error_reply('ERR redislock: bad arguments to renew')
        end
        leases[text] = lease
    end
    if ARGV[2 * i - 1] == '' then
        return redis.error_reply('ERR redislock: bad arguments to renew')
    end
end
local call, pcall = redis.call, redis.pcall
local answers = {}
for i = 1, #KEYS do
    local key, lease = KEYS[i], ARGV[2 * i]
    local has = pcall('HEXISTS', key, ARGV[2 * i - 1])
    if has == 1 then
        -- Always a write: a server that may no longer write cannot answer "renewed". Above 2^53 a number is not exact.
        local left = call('PTTL', key)
        if left > leases[lease] then
            lease = string.format('%.0f', math.min(left, 9007199254740991))
        end
        call('PEXPIRE', key, lease)
        answers[i] = '1'
    elseif has == 0 then
        answers[i] = '0'
    elseif string.find(has.err, 'WRONGTYPE', 1, true) then
        answers[i] = 'w'
    else
        return has
    end
end
return table.concat(answers)
