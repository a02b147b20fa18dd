-- Set a writer's count to a lower value; zero frees the lock, or leaves it to the writer's own read holds, and tells
-- the waiters. May be sent again.
-- KEYS[1]  the lock's name: hash 'mode' -> 'read' or 'write', reader -> count, "<writer>:write" -> count
-- KEYS[2]  what the hold keys of readers begin with: <KEYS[2]>:<reader>:rwlock_timeout:<level>;
--          <KEYS[2]>:redislock_writer is there while a writer waits for readers
-- ARGV[1]  holder, "<client uuid>:<number>:write"
-- ARGV[2]  hold count to leave, 0 .. 2147483647
-- ARGV[3]  lease in ms that the remaining holds need at least, 1 .. 2592000000; ignored for count 0
-- ARGV[4]  channel that waiters listen to
-- Returns  nil: the holder does not have the lock; it may have waited for it
--          0: still held, with that count or, where it was lower already, with the lower one
--          n >= 1: no longer written; n - 1 subscribers were told
-- Clock    Redis' own key expiry only
-- Effects  count 0: deletes KEYS[1], or, if the writer reads as well, only its field, with 'mode' -> 'read' and the
--          time to live of its read holds; publishes '1' on ARGV[4] either way, since readers may go on; if the writer
--          only waited, deletes the note that it waits and publishes '1' on ARGV[4]. Another count, and only if the
--          writer's was higher: writes KEYS[1] and its time to live, which is never shortened. A key of another type is
--          left alone (WRONGTYPE)
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local count = ARGV[2] == '0' and 0 or tonumber(string.match(ARGV[2] or '', '^[1-9]%d*$'))
local lease = tonumber(string.match(ARGV[3] or '', '^[1-9]%d*$'))
if #KEYS ~= 2 or #ARGV ~= 4 or ARGV[1] == '' or not count or count > 2147483647
    or count > 0 and (not lease or lease > 2592000000) then
    return redis.error_reply('ERR redislock: bad arguments to unlock')
end
--include parts/from_master.lua
--include parts/publish.lua
--include parts/held.lua
held = tonumber(held or '')
if not held then
    --include parts/waiting_writer.lua
    local who = count == 0 and redis.call('GET', waitingWriter)
    if who and string.match(who, '^%d+ (.*)$') == ARGV[1] then
        redis.call('DEL', waitingWriter)
        publish(ARGV[4], '1')
    end
    return fromMaster(nil)
end
if count > 0 then
    --include parts/lower_count.lua
    return 0
end
--include parts/read_holds.lua
local longest = 0 -- of the writer's own read holds; a hold whose lease is over keeps nobody out
if redis.call('HLEN', KEYS[1]) > 2 then
    redis.call('HDEL', KEYS[1], ARGV[1])
    longest = longestRead()
end
if longest > 0 then
    redis.call('HSET', KEYS[1], 'mode', 'read')
    redis.call('PEXPIRE', KEYS[1], string.format('%.0f', longest))
else
    --include parts/free.lua
end
local told = publish(ARGV[4], '1')
if type(told) == 'number' then
    return told + 1
end
return 1
