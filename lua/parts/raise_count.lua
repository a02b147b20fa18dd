-- The count of ARGV[1], which holds the lock, becomes ARGV[3]; its lease is `lease` ms at least, of `left` that were left.
-- PEXPIRE first: it passes when Redis is out of memory, and then so does the rest. Above 2^53 a number is not exact.
local ttl = string.format('%.0f', math.max(lease, math.min(left, 9007199254740991)))
redis.call('PEXPIRE', KEYS[1], ttl)
if redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) == 1 then
    -- The server stood still inside PEXPIRE for longer than that: it deleted the key; HSET made one without.
    redis.call('PEXPIRE', KEYS[1], ttl)
end
