-- `mode`: 'read', 'write', or false if nobody has the lock; `fields`: the hash, names and values by turns. Ends the
-- script if the hash is no read/write lock. It is read whole only if its mode says that it is one: the hash of another
-- program may be large.
local mode = redis.call('HGET', KEYS[1], 'mode')
local fields = (mode == 'read' or mode == 'write') and redis.call('HGETALL', KEYS[1]) or {}
local isLock = #fields > 0 or redis.call('HLEN', KEYS[1]) == 0
for i = 1, #fields, 2 do
    isLock = isLock and (fields[i] == 'mode' or string.match(fields[i + 1], '^[1-9]%d*$'))
end
if not isLock then
    return fromMaster(redis.error_reply('WRONGTYPE redislock: the key is no read/write lock'))
end
