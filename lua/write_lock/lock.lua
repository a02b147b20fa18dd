-- Acquire the write lock for a holder, or move the holder's count to a nested level. May be sent again: it sets states,
-- never adds.
-- KEYS[1]  the lock's name: hash 'mode' -> 'read' or 'write', reader -> count, "<writer>:write" -> count
-- KEYS[2]  what the lock's other keys begin with; <KEYS[2]>:redislock_writer is there while a writer waits for readers
-- ARGV[1]  holder, "<client uuid>:<number>:write"
-- ARGV[2]  lease in ms, 10 .. 2592000000
-- ARGV[3]  hold count to set, 1 (outermost) .. 2147483647
-- ARGV[4]  if readers keep the writer out: for how long no other reader may come in, in ms, 0 (does not wait) ..
--          2592000000
-- Returns  nil: the holder has the lock with that count
--          -3: nested (count > 1), but the holder's field is gone: lost
--          otherwise {the key's remaining time in ms (-1: a key without time to live), the holder}: held by others;
--          nil for a holder where there are several
-- Clock    Redis' own key expiry only
-- Effects  writes KEYS[1] and its time to live, which is never shortened (a foreign PERSIST is undone); notes that a
--          writer waits, if none did, with a time to live, and deletes the note when the lock is granted; a key of
--          another type is left alone (WRONGTYPE), and so is a lock of another kind
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local lease = tonumber(string.match(ARGV[2] or '', '^[1-9]%d*$'))
local count = tonumber(string.match(ARGV[3] or '', '^[1-9]%d*$'))
local place = ARGV[4] == '0' and 0 or tonumber(string.match(ARGV[4] or '', '^[1-9]%d*$'))
if #KEYS ~= 2 or #ARGV ~= 4 or ARGV[1] == '' or not lease or lease < 10 or lease > 2592000000
    or not count or count > 2147483647 or not place or place > 2592000000 then
    return redis.error_reply('ERR redislock: bad arguments to lock')
end
--include parts/from_master.lua
local mode = redis.call('HGET', KEYS[1], 'mode')
local left = redis.call('PTTL', KEYS[1])
if left ~= -2 and not mode then
    return fromMaster(redis.error_reply('WRONGTYPE redislock: the name is in use as a lock of another kind'))
end
--include parts/waiting_writer.lua
if left == -2 and count == 1 then
    redis.call('HSET', KEYS[1], 'mode', 'write')
    local expires = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
    if expires ~= 1 then -- not permitted: better no lock than one that stays for ever
        redis.call('DEL', KEYS[1])
        return expires
    end
    redis.call('HSET', KEYS[1], ARGV[1], '1')
    redis.pcall('DEL', waitingWriter) -- pcall: the lock is granted all the same, and that key ends by itself
    return nil
end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    if count > 1 then
        return fromMaster(-3)
    end
    if place > 0 and mode == 'read' and not string.match(redis.call('GET', waitingWriter) or '', ' ') then
        -- pcall: if memory is full, the writer waits without this key
        redis.pcall('SET', waitingWriter, ARGV[4] .. ' ' .. ARGV[1], 'PX', string.format('%.0f', 2 * place))
    end
    local fields = redis.pcall('HLEN', KEYS[1]) == 2 and redis.pcall('HKEYS', KEYS[1]) or { false }
    return fromMaster({ left, fields[1] ~= 'mode' and fields[1] or fields[2] or false })
end
--include parts/raise_count.lua
return nil
