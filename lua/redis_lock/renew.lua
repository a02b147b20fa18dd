-- Extend the leases of several holders, each of a lock of its own, if it still has that lock. May be sent again.
-- KEYS[i]     a lock's name: hash holder -> hold count; at most 1000
-- ARGV[2i-1]  the lock's holder, "<client uuid>:<number>"
-- ARGV[2i]    its lease in ms, 10 .. 2592000000
-- Returns  a character for each lock. 1: renewed; 0: the holder no longer has the lock; w: a key of another type
--          has its name
-- Clock    Redis' own key expiry only
-- Effects  sets the times to live of the keys, never shorter than they were (a foreign PERSIST is undone); a key of
--          another type is left alone
local KEYS, ARGV, call, pcall, locks = KEYS, ARGV, redis.call, redis.pcall, #KEYS
--include parts/leases.lua
--include parts/from_master.lua
local answers = {}
for i = 1, locks do
    local key, time = KEYS[i], ARGV[2 * i]
    local has = pcall('HEXISTS', key, ARGV[2 * i - 1])
    if has == 1 then
        -- Always a write: a server that may no longer write cannot answer "renewed". Above 2^53 a number is not exact.
        local left = call('PTTL', key)
        if left > leases[time] then
            time = string.format('%.0f', math.min(left, 9007199254740991))
        end
        call('PEXPIRE', key, time)
        answers[i] = '1'
    elseif has == 0 then
        answers[i] = '0'
    elseif string.find(has.err, 'WRONGTYPE', 1, true) then
        answers[i] = 'w'
    else
        return has
    end
end
local all = table.concat(answers)
return string.find(all, '1', 1, true) and all or fromMaster(all)
