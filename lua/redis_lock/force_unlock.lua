-- Free the lock whoever holds it, and tell the waiters. Sent again, it frees whoever has taken the lock in between.
-- KEYS[1]  the lock's name: hash holder -> hold count
-- ARGV[1]  channel that waiters listen to
-- Returns  1: freed; 0: it was free already
-- Clock    none
-- Effects  deletes KEYS[1] and publishes '0' on ARGV[1]; a key of another type is left alone (WRONGTYPE)
if #KEYS ~= 1 or #ARGV ~= 1 or ARGV[1] == '' then
    return redis.error_reply('ERR redislock: bad arguments to force_unlock')
end
if redis.call('HLEN', KEYS[1]) == 0 then
    return 0
end
redis.call('DEL', KEYS[1])
-- pcall: a refused publish must not look like a failed unlock; the waiters then find out by polling
redis.pcall('PUBLISH', ARGV[1], '0')
return 1
