-- Acquire the lock for a holder, with a new token, or move the holder's count to a nested level. May be sent again: it sets
-- states, never adds, and tells the same token again.
-- KEYS[1]  the lock's name: hash holder -> hold count
-- KEYS[2]  the last token, a decimal string without a time to live: it must outlast every holder
-- ARGV[1]  holder, "<client uuid>:<number>"
-- ARGV[2]  lease in ms, 10 .. 2592000000
-- ARGV[3]  hold count to set, 1 (outermost) .. 2147483647
-- Returns  {token}: the holder has the lock with that count; the token is a decimal string
--          -3: nested (count > 1), but the holder's field is gone: lost
--          otherwise the key's remaining time in ms, held by another (-1: a key without time to live)
-- Clock    the server's TIME in microseconds, so that tokens still grow after a fail-over that lost the last one
-- Effects  writes KEYS[2] first, then KEYS[1] and its time to live, which is never shortened (a foreign PERSIST is
--          undone); a key of another type is left alone (WRONGTYPE), and so is one of a read/write lock
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local lease = tonumber(string.match(ARGV[2] or '', '^[1-9]%d*$'))
local count = tonumber(string.match(ARGV[3] or '', '^[1-9]%d*$'))
if #KEYS ~= 2 or #ARGV ~= 3 or ARGV[1] == ''
    or not lease or lease < 10 or lease > 2592000000 or not count or count > 2147483647 then
    return redis.error_reply('ERR redislock: bad arguments to lock')
end
if redis.replicate_commands then
    redis.replicate_commands() -- before version 7 a script that asks for the time may otherwise not write
end
-- The next token: greater than the last one and than the time.
local function nextToken()
    local time = redis.call('TIME')
    local now = time[1] .. string.format('%06d', tonumber(time[2]))
    local last = redis.call('GET', KEYS[2]) or '0'
    -- as text: a number above 2^53 is not exact in Lua; the server's own counting is
    if #last > #now or #last == #now and last >= now then
        redis.call('INCR', KEYS[2])
    else
        redis.call('SET', KEYS[2], now)
    end
    return redis.call('GET', KEYS[2])
end
local left = redis.call('PTTL', KEYS[1])
if left == -2 and count == 1 then
    local token = nextToken()
    redis.call('HSET', KEYS[1], ARGV[1], '1')
    local expires = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
    if expires ~= 1 then -- not permitted: better no lock than one that stays for ever
        redis.call('DEL', KEYS[1])
        return expires
    end
    return { token }
end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    if redis.call('HEXISTS', KEYS[1], 'mode') == 1 then
        return redis.error_reply('WRONGTYPE redislock: the name is in use as a read/write lock')
    end
    if count > 1 then
        return -3
    end
    return left
end
-- PEXPIRE first: it passes when Redis is out of memory, and then so does the rest. Above 2^53 a number is not exact.
local ttl = string.format('%.0f', math.max(lease, math.min(left, 9007199254740991)))
redis.call('PEXPIRE', KEYS[1], ttl)
if redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) == 1 then
    -- The server stood still inside PEXPIRE for longer than that: it deleted the key; HSET made one without.
    redis.call('PEXPIRE', KEYS[1], ttl)
end
-- nobody else can have raised it while this holder has the lock
return { redis.call('GET', KEYS[2]) or nextToken() }
