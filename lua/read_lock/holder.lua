-- One of the readers.
-- KEYS[1]  the lock's name: hash 'mode' -> 'read' or 'write', reader -> count, "<writer>:write" -> count
-- Returns  a reader, "<client>:<number>"; nil: nobody reads, or a writer holds the lock
-- Clock    none
-- Effects  none; a key that is no read/write lock is an error (WRONGTYPE)
if #KEYS ~= 1 or #ARGV ~= 0 then
    return redis.error_reply('ERR redislock: bad arguments to holder')
end
--include parts/from_master.lua
--include parts/read_write_hold.lua
if mode == 'read' then
    for i = 1, #fields, 2 do
        if fields[i] ~= 'mode' then
            return fromMaster(fields[i])
        end
    end
end
return fromMaster(nil)
