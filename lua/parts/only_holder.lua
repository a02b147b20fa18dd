-- Sets `holder` to who has the lock; to false if that is not just one, or if the server refuses to say. HLEN
-- comes first: the hash of another program may be large. Ends the script if it is a read/write lock.
holder = redis.pcall('HLEN', KEYS[1]) == 1 and redis.pcall('HKEYS', KEYS[1])[1] or false
if holder == 'mode' or not holder and redis.call('HEXISTS', KEYS[1], 'mode') == 1 then
    return fromMaster(redis.error_reply('WRONGTYPE redislock: the name is in use as a read/write lock'))
end
