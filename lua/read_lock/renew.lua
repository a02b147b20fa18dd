-- Extend the leases of several readers, each of a lock of its own, if it still reads. May be sent again.
-- KEYS[2i-1]  a lock's name: hash 'mode' -> 'read' or 'write', reader -> count, "<writer>:write" -> count; at most 1000
-- KEYS[2i]    what its hold keys begin with: <KEYS[2i]>:<reader>:rwlock_timeout:<level> is '1' as long as that
--             level's lease
-- ARGV[1]     lease in ms, 10 .. 2592000000
-- ARGV[i+1]   the lock's reader, "<client uuid>:<number>"
-- Returns  a character for each lock. 1: renewed; 0: the reader no longer has the lock; w: a key of another type
--          has its name
-- Clock    Redis' own key expiry only
-- Effects  sets the times to live of the keys and of these readers' hold keys, never shorter than they were (a foreign
--          PERSIST is undone); a key of another type is left alone
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local lease = tonumber(string.match(ARGV[1] or '', '^[1-9]%d*$'))
local good = #KEYS > 0 and #KEYS <= 2000 and #ARGV == #KEYS / 2 + 1 and lease and lease >= 10 and lease <= 2592000000
for i = 2, good and #ARGV or 0 do
    good = good and ARGV[i] ~= ''
end
if not good then
    return redis.error_reply('ERR redislock: bad arguments to renew')
end
--include parts/from_master.lua
-- Always a write: a server that may no longer write cannot answer "renewed". Above 2^53 a number is not exact.
local function longer(key)
    return string.format('%.0f', math.max(lease, math.min(redis.call('PTTL', key), 9007199254740991)))
end
local answers = {}
for i = 1, #KEYS / 2 do
    local name, reader = KEYS[2 * i - 1], ARGV[i + 1]
    local held = redis.pcall('HGET', name, reader)
    if type(held) == 'table' then
        if not string.find(held.err, 'WRONGTYPE', 1, true) then
            return held
        end
        answers[i] = 'w'
    elseif not tonumber(held or '') then
        answers[i] = '0'
    else
        redis.call('PEXPIRE', name, longer(name))
        for level = 1, tonumber(held) do
            local key = KEYS[2 * i] .. ':' .. reader .. ':rwlock_timeout:' .. string.format('%.0f', level)
            redis.call('SET', key, '1', 'PX', longer(key))
        end
        answers[i] = '1'
    end
end
local all = table.concat(answers)
return string.find(all, '1', 1, true) and all or fromMaster(all)
