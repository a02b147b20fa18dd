-- Sets the count of ARGV[1], which holds the lock, to ARGV[3]; makes the time to live, `left`, at least `lease` ms.
-- PEXPIRE first: Redis allows it even when out of memory, and then allows the rest. Above 2^53 a number is not exact.
local ttl = string.format('%.0f', math.max(lease, math.min(left, 9007199254740991)))
redis.call('PEXPIRE', KEYS[1], ttl)
if redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) == 1 then
    -- The server stood still inside PEXPIRE for longer than that: it deleted the key, and HSET made one without a time
    -- to live.
    redis.call('PEXPIRE', KEYS[1], ttl)
end
