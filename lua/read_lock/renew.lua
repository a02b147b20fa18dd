-- Extend the leases of several readers, each of a lock of its own, if it still reads. May be sent again.
-- KEYS[2i-1]  a lock's name: hash 'mode' -> 'read' or 'write', reader -> count, "<writer>:write" -> count; at most 1000
-- KEYS[2i]    the reader's hold key of level 1: <prefix>:<reader>:rwlock_timeout:1 is '1' as long as that level's
--             lease; those of other levels end with their numbers
-- ARGV[2i-1]  the lock's reader, "<client uuid>:<number>"
-- ARGV[2i]    its lease in ms, 10 .. 2592000000
-- Returns  a character for each lock. 1: renewed; 0: the reader no longer has the lock; w: a key of another type
--          has its name
-- Clock    Redis' own key expiry only
-- Effects  sets the times to live of the keys and of these readers' hold keys, never shorter than they were (a foreign
--          PERSIST is undone); a key of another type is left alone
local locks = #KEYS / 2
--include parts/leases.lua
--include parts/from_master.lua
-- Always a write: a server that may no longer write cannot answer "renewed". Above 2^53 a number is not exact.
local function longer(key, lease)
    return string.format('%.0f', math.max(lease, math.min(redis.call('PTTL', key), 9007199254740991)))
end
local answers = {}
for i = 1, locks do
    local name, reader, lease = KEYS[2 * i - 1], ARGV[2 * i - 1], leases[ARGV[2 * i]]
    local held = redis.pcall('HGET', name, reader)
    if type(held) == 'table' then
        if not string.find(held.err, 'WRONGTYPE', 1, true) then
            return held
        end
        answers[i] = 'w'
    elseif not tonumber(held or '') then
        answers[i] = '0'
    else
        redis.call('PEXPIRE', name, longer(name, lease))
        for level = 1, tonumber(held) do
            local key = string.sub(KEYS[2 * i], 1, -2) .. string.format('%.0f', level)
            redis.call('SET', key, '1', 'PX', longer(key, lease))
        end
        answers[i] = '1'
    end
end
local all = table.concat(answers)
return string.find(all, '1', 1, true) and all or fromMaster(all)
