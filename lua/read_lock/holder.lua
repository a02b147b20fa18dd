-- One of those who read.
-- KEYS[1]  the lock's name: hash 'mode' -> 'read' or 'write', reader -> count, "<writer>:write" -> count
-- Returns  a reader, "<client>:<number>"; nil: nobody reads, or a writer holds the lock
-- Clock    none
-- Effects  none; a key of another type is an error (WRONGTYPE)
if #KEYS ~= 1 or #ARGV ~= 0 then
    return redis.error_reply('ERR redislock: bad arguments to holder')
end
if redis.call('HGET', KEYS[1], 'mode') == 'read' then
    for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
        if field ~= 'mode' then
            return field
        end
    end
end
return nil
