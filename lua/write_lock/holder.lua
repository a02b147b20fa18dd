-- Who writes.
-- KEYS[1]  the lock's name: hash 'mode' -> 'read' or 'write', reader -> count, "<writer>:write" -> count
-- Returns  the writer, "<client>:<number>:write"; nil: nobody writes
-- Clock    none
-- Effects  none; a key of another type is an error (WRONGTYPE)
if #KEYS ~= 1 or #ARGV ~= 0 then
    return redis.error_reply('ERR redislock: bad arguments to holder')
end
if redis.call('HGET', KEYS[1], 'mode') == 'write' then
    for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
        if string.sub(field, -6) == ':write' then
            return field
        end
    end
end
return nil
