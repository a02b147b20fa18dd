-- Acquire the read lock for a holder, or move the holder's count to a nested level. May be sent again: it sets states,
-- never adds.
-- KEYS[1]  the lock's name: hash 'mode' -> 'read' or 'write', reader -> count, "<writer>:write" -> count
-- KEYS[2]  what the hold keys begin with: <KEYS[2]>:<reader>:rwlock_timeout:<level> is '1' as long as that level's
--          lease; <KEYS[2]>:redislock_writer is there while a writer waits for readers
-- ARGV[1]  holder, "<client uuid>:<number>"
-- ARGV[2]  lease in ms, 10 .. 2592000000
-- ARGV[3]  hold count to set, 1 (outermost) .. 2147483647
-- ARGV[4]  the thread's own write hold, "<client uuid>:<number>:write", beside which it may read; '' for none
-- Returns  nil: the holder has the lock with that count
--          -3: nested (count > 1), but the holder's field is gone: lost
--          otherwise {the time in ms after which to ask again (-1: a key without time to live), the writer}: held by a
--          writer; or, with nil for the writer, a writer waits and the holder does not read yet
-- Clock    Redis' own key expiry only
-- Effects  shortens the key of a waiting writer if the server's clock was set back, and deletes it if it was written
--          for an unknown writer, and one has the lock; writes KEYS[1], the hold key of that level, and their times to
--          live, which are never shortened (a foreign PERSIST is undone); deletes hold keys of higher levels; a key
--          of another type is left alone (WRONGTYPE), and so is a lock of another kind
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local lease = tonumber(string.match(ARGV[2] or '', '^[1-9]%d*$'))
local count = tonumber(string.match(ARGV[3] or '', '^[1-9]%d*$'))
if #KEYS ~= 2 or #ARGV ~= 4 or ARGV[1] == ''
    or not lease or lease < 10 or lease > 2592000000 or not count or count > 2147483647 then
    return redis.error_reply('ERR redislock: bad arguments to lock')
end
--include parts/from_master.lua
local mode = redis.call('HGET', KEYS[1], 'mode')
local left = redis.call('PTTL', KEYS[1])
if left ~= -2 and not mode then
    return fromMaster(redis.error_reply('WRONGTYPE redislock: the name is in use as a lock of another kind'))
end
--include parts/read_holds.lua
-- Makes or extends the hold key. If that is not permitted, undoes the first level: without its hold key it would not
-- count for the other readers.
local function keep(ttl)
    local made = redis.pcall('SET', holdKey(ARGV[1], count), '1', 'PX', ttl)
    if not made.err then
        return nil
    end
    if count == 1 then
        redis.call('HDEL', KEYS[1], ARGV[1])
        if redis.call('HLEN', KEYS[1]) == 1 then
            redis.call('DEL', KEYS[1])
        end
    end
    return made
end
local held = left ~= -2 and tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '')
if count > 1 and not held then
    return fromMaster(-3)
end
--include parts/waiting_writer.lua
--include parts/is_writers.lua
if mode ~= 'write' and not held then
    local waits, open = string.match(redis.call('GET', waitingWriter) or '', '^(%d+)/?(%d*)')
    waits = tonumber(waits)
    open = tonumber(open or '') or waits
    local rest = waits and redis.call('PTTL', waitingWriter) - open or 0
    if waits and rest > waits then -- the server's clock was set back
        redis.pcall('PEXPIRE', waitingWriter, string.format('%.0f', waits + open))
        rest = waits
    end
    if rest > 0 then
        return fromMaster({ rest, false })
    end
end
if left == -2 then
    redis.call('HSET', KEYS[1], 'mode', 'read')
    local expires = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
    if expires ~= 1 then -- not permitted: better no lock than one that stays for ever
        redis.call('DEL', KEYS[1])
        return expires
    end
    redis.call('HSET', KEYS[1], ARGV[1], '1')
    return keep(ARGV[2])
end
if mode == 'write' and not held and (ARGV[4] == '' or redis.call('HEXISTS', KEYS[1], ARGV[4]) == 0) then
    if string.match(redis.call('GET', waitingWriter) or '', '/') then -- a writer of Redisson's came in time
        redis.pcall('DEL', waitingWriter)
    end
    local writer = false
    local size = redis.pcall('HLEN', KEYS[1])
    for _, field in ipairs((size == 2 or size == 3) and redis.pcall('HKEYS', KEYS[1]) or {}) do
        writer = isWriters(field) and field or writer
    end
    return fromMaster({ left, writer })
end
-- PEXPIRE first: Redis allows it even when out of memory, and then allows the rest. Above 2^53 a number is not exact.
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(lease, math.min(left, 9007199254740991))))
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
-- A late copy makes the count lower: then this level keeps what was kept for the levels above.
local kept = lease
for level = count, held or 0 do
    kept = math.max(kept, math.min(redis.call('PTTL', holdKey(ARGV[1], level)), 9007199254740991))
end
local refused = keep(string.format('%.0f', kept))
for level = count + 1, not refused and held or 0 do
    redis.call('DEL', holdKey(ARGV[1], level))
end
return refused
