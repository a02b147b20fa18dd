-- `holder`: who has the lock; nil if nobody has it. Ends the script if the hash is no lock of one holder. HLEN comes
-- first: the hash of another program may be large.
local size = redis.call('HLEN', KEYS[1])
local holder = size == 1 and redis.call('HKEYS', KEYS[1])[1] or nil
local count = holder and redis.call('HGET', KEYS[1], holder)
if size > 1 or holder == 'mode' or count and not string.match(count, '^[1-9]%d*$') then
    return fromMaster(redis.error_reply('WRONGTYPE redislock: the key is no lock'))
end
