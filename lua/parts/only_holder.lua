-- Sets `holder` to who has the lock, false where that is not just one, or may not be asked; HLEN comes first: what
-- others keep there may be large. Ends the script where it is a read/write lock.
holder = redis.pcall('HLEN', KEYS[1]) == 1 and redis.pcall('HKEYS', KEYS[1])[1] or false
if holder == 'mode' or not holder and redis.call('HEXISTS', KEYS[1], 'mode') == 1 then
    return redis.error_reply('WRONGTYPE redislock: the name is in use as a read/write lock')
end
