-- Set a holder's count to a lower value; zero frees the lock and tells the waiters. May be sent again.
-- KEYS[1]  the lock's name: hash holder -> hold count
-- ARGV[1]  holder, "<client uuid>:<number>"
-- ARGV[2]  hold count to leave, 0 .. 2147483647
-- ARGV[3]  lease in ms that the remaining holds need at least, 1 .. 2592000000; ignored for count 0
-- ARGV[4]  channel that waiters listen to; '' to tell nobody: nobody listens, or the same client's next request follows
-- Returns  nil: the holder has no such lock
--          0: still held, with that count or, where it was lower already, with the lower one
--          n >= 1: freed; n - 1 subscribers were told
-- Clock    none
-- Effects  count 0: deletes KEYS[1], if it is the holder's, and publishes '0' on ARGV[4], if that is given and the lock
--          is free now. Another count, and only if the holder's was higher: writes KEYS[1] and its time to live, which
--          is never shortened. A key of another type is left alone (WRONGTYPE)
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local count = ARGV[2] == '0' and 0 or tonumber(string.match(ARGV[2] or '', '^[1-9]%d*$'))
local lease = tonumber(string.match(ARGV[3] or '', '^[1-9]%d*$'))
if #KEYS ~= 1 or #ARGV ~= 4 or ARGV[1] == '' or not count or count > 2147483647
    or count > 0 and (not lease or lease > 2592000000) then
    return redis.error_reply('ERR redislock: bad arguments to unlock')
end
--include parts/from_master.lua
--include parts/publish.lua
--include parts/held.lua
if not held then
    -- a release may have told nobody, because this holder's request was to follow
    if count == 0 and ARGV[4] ~= '' and redis.call('PTTL', KEYS[1]) == -2 then
        publish(ARGV[4], '0')
    end
    return fromMaster(nil)
end
if count > 0 then
    --include parts/lower_count.lua
    return 0
end
--include parts/free.lua
local told = ARGV[4] ~= '' and publish(ARGV[4], '0')
if type(told) == 'number' then
    return told + 1
end
return 1
