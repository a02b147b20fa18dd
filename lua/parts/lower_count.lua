-- Sets the count of ARGV[1], `held`, to `count`, ARGV[2], if that is lower: a late copy of this request must neither
-- raise the count again nor cut the time of what came after it.
if (tonumber(held) or count + 1) > count then
    -- PEXPIRE first: Redis allows it even when out of memory, and then allows the rest. Never shorter than it was: a
    -- later level may already count on it. Above 2^53 a number is not exact.
    local left = math.min(redis.call('PTTL', KEYS[1]), 9007199254740991)
    local ttl = string.format('%.0f', math.max(lease, left))
    redis.call('PEXPIRE', KEYS[1], ttl)
    if redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) == 1 then
        -- The server stood still inside PEXPIRE for longer than that: it deleted the key, and HSET made one without a
        -- time to live.
        redis.call('PEXPIRE', KEYS[1], ttl)
    end
else
    return fromMaster(0)
end
