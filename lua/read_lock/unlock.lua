-- Set a reader's count to a lower value; zero ends its hold, and with the last reader the lock. May be sent again.
-- KEYS[1]  the lock's name: hash 'mode' -> 'read' or 'write', reader -> count, "<writer>:write" -> count
-- KEYS[2]  what the hold keys begin with: <KEYS[2]>:<reader>:rwlock_timeout:<level> is '1' as long as that level's
--          lease
-- ARGV[1]  holder, "<client uuid>:<number>"
-- ARGV[2]  hold count to leave, 0 .. 2147483647
-- ARGV[3]  lease in ms that the remaining holds need at least, 1 .. 2592000000; ignored for count 0
-- ARGV[4]  channel that waiters listen to
-- Returns  nil: the holder has no such lock
--          0: still held, with that count or, where it was lower already, with the lower one
--          1: this holder no longer reads
--          n > 1: the same, and the lock is free; n - 1 subscribers were told
-- Clock    Redis' own key expiry only
-- Effects  count 0: deletes the reader's field and hold keys; if other readers are left, KEYS[1] lives as long as the
--          longest of their hold keys, and if somebody listens, new ones are kept out for a while, as
--          parts/waiting_writer.lua says; if none is left, and no writer, deletes KEYS[1] and publishes '0' on ARGV[4].
--          Another count, and only if the reader's was higher: writes KEYS[1] and deletes the hold keys above; times to
--          live of what is left are never shortened. A key of another type is left alone (WRONGTYPE)
-- Cost     if the reader had the longest lease, one look at each hold key of the other readers
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local count = ARGV[2] == '0' and 0 or tonumber(string.match(ARGV[2] or '', '^[1-9]%d*$'))
local lease = tonumber(string.match(ARGV[3] or '', '^[1-9]%d*$'))
if #KEYS ~= 2 or #ARGV ~= 4 or ARGV[1] == '' or not count or count > 2147483647
    or count > 0 and (not lease or lease > 2592000000) then
    return redis.error_reply('ERR redislock: bad arguments to unlock')
end
--include parts/from_master.lua
--include parts/publish.lua
if redis.replicate_commands then
    redis.replicate_commands() -- before version 7 a script that looks at subscribers may otherwise not write
end
--include parts/held.lua
held = tonumber(held or '')
if not held then
    return fromMaster(nil)
end
--include parts/read_holds.lua
local left = redis.call('PTTL', KEYS[1])
if count > 0 then
    if held > count then
        -- Never shorter than it was: a later level may already count on it. Above 2^53 a number is not exact.
        local ttl = string.format('%.0f', math.max(lease, math.min(left, 9007199254740991)))
        redis.call('PEXPIRE', KEYS[1], ttl)
        redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
        local kept = lease
        for level = count, held do
            kept = math.max(kept, math.min(redis.call('PTTL', holdKey(ARGV[1], level)), 9007199254740991))
            redis.pcall('DEL', holdKey(ARGV[1], level))
        end
        redis.call('SET', holdKey(ARGV[1], count), '1', 'PX', string.format('%.0f', kept))
        return 0
    end
    return fromMaster(0)
end
redis.call('HDEL', KEYS[1], ARGV[1])
local own = -2
for level = 1, held do
    own = math.max(own, redis.call('PTTL', holdKey(ARGV[1], level)))
    redis.pcall('DEL', holdKey(ARGV[1], level))
end
if redis.call('HGET', KEYS[1], 'mode') == 'write' then
    return 1 -- this holder's own write lock stays
end
--include parts/waiting_writer.lua
-- How many wait on the channel.
local function listenersOf(channel)
    local mark, count = string.match(channel, '^[>*]'), 0
    channel = mark and string.sub(channel, 2) or channel
    for _, how in ipairs(mark and { 'SHARDNUMSUB', mark == '*' and 'NUMSUB' or nil } or { 'NUMSUB' }) do
        count = math.max(count, tonumber(redis.pcall('PUBSUB', how, channel)[2]) or 0)
    end
    return count
end
local most, moment = 1000, 20 -- for so many ms readers that are left keep others out; so many has a writer to come then
if redis.call('HLEN', KEYS[1]) > 1 then
    if redis.call('EXISTS', waitingWriter) == 0 and listenersOf(ARGV[4]) > 0 then
        redis.pcall('SET', waitingWriter, most .. '/' .. 9 * most, 'PX', string.format('%.0f', 10 * most))
    end
    if own + 100 < left then -- the clock goes on while a script runs
        return 1 -- another reader's lease is the longest
    end
    local longest = longestRead()
    if longest > 0 then
        redis.call('PEXPIRE', KEYS[1], string.format('%.0f', longest))
        return 1
    end -- the others are readers that died
end
local open = tonumber((string.match(redis.call('GET', waitingWriter) or '', '/(%d+)')))
local rest = open and redis.call('PTTL', waitingWriter) - open or 0
if rest > 0 and open == 9 * most then
    open = 9 * (most - rest + moment)
    redis.pcall('SET', waitingWriter, moment .. '/' .. open, 'PX', string.format('%.0f', moment + open))
end
--include parts/free.lua
local told = publish(ARGV[4], '0')
if type(told) == 'number' then
    return told + 1
end
return 1
