-- The count of ARGV[1], which is `held`, becomes `count`, ARGV[2], if it was higher: a late copy of this request must
-- neither raise it again nor cut the time of what came after it.
if (tonumber(held) or count + 1) > count then
    -- PEXPIRE first: it passes when Redis is out of memory, and then so does the rest. Never shorter than it was: a
    -- later level may already count on it. Above 2^53 a number is not exact.
    local left = math.min(redis.call('PTTL', KEYS[1]), 9007199254740991)
    local ttl = string.format('%.0f', math.max(lease, left))
    redis.call('PEXPIRE', KEYS[1], ttl)
    if redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) == 1 then
        -- The server stood still inside PEXPIRE for longer than that: it deleted the key; HSET made one without.
        redis.call('PEXPIRE', KEYS[1], ttl)
    end
end
