-- Extend the leases of several readers, each of a lock of its own, if it still reads. May be sent again.
-- KEYS[2i-1]   a lock's name: hash 'mode' -> 'read' or 'write', reader -> count, "<writer>:write" -> count; at most 1000
-- KEYS[2i]     what its hold keys begin with: <KEYS[2i]>:<reader>:rwlock_timeout:<level> is '1' as long as that level's lease
-- ARGV[2i-1]   its reader, "<client uuid>:<number>"
-- ARGV[2i]     the lease in ms, 10 .. 2592000000
-- Returns  a character for each lock. 1: renewed; 0: the reader no longer has the lock; w: a key of another type has its name
-- Clock    Redis' own key expiry only
-- Effects  sets the times to live of the keys and of these readers' hold keys, never shorter than they were (a foreign
--          PERSIST is undone); a key of another type is left alone
if #KEYS == 0 or #KEYS > 2000 or #ARGV ~= #KEYS or #KEYS % 2 ~= 0 then
    return redis.error_reply('ERR redislock: bad arguments to renew')
end
local leases = {}
for i = 1, #KEYS, 2 do
    -- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
    local lease = tonumber(string.match(ARGV[i + 1], '^[1-9]%d*$'))
    if ARGV[i] == '' or not lease or lease < 10 or lease > 2592000000 then
        return redis.error_reply('ERR redislock: bad arguments to renew')
    end
    leases[i] = lease
end
-- Always a write: a server that may no longer write cannot answer "renewed". Above 2^53 a number is not exact.
local function longer(key, lease)
    return string.format('%.0f', math.max(lease, math.min(redis.call('PTTL', key), 9007199254740991)))
end
local answers = {}
for i = 1, #KEYS, 2 do
    local held = redis.pcall('HGET', KEYS[i], ARGV[i])
    if type(held) == 'table' then
        if not string.find(held.err, 'WRONGTYPE', 1, true) then
            return held
        end
        answers[#answers + 1] = 'w'
    elseif not tonumber(held or '') then
        answers[#answers + 1] = '0'
    else
        redis.call('PEXPIRE', KEYS[i], longer(KEYS[i], leases[i]))
        for level = 1, tonumber(held) do
            local key = KEYS[i + 1] .. ':' .. ARGV[i] .. ':rwlock_timeout:' .. string.format('%.0f', level)
            redis.call('SET', key, '1', 'PX', longer(key, leases[i]))
        end
        answers[#answers + 1] = '1'
    end
end
return table.concat(answers)
