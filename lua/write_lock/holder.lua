-- The writer that has the lock.
-- KEYS[1]  the lock's name: hash 'mode' -> 'read' or 'write', reader -> count, "<writer>:write" -> count
-- Returns  the writer, "<client>:<number>:write"; nil: nobody writes
-- Clock    none
-- Effects  none; a key that is no read/write lock is an error (WRONGTYPE)
if #KEYS ~= 1 or #ARGV ~= 0 then
    return redis.error_reply('ERR redislock: bad arguments to holder')
end
--include parts/from_master.lua
--include parts/read_write_hold.lua
--include parts/is_writers.lua
if mode == 'write' then
    for i = 1, #fields, 2 do
        if isWriters(fields[i]) then
            return fromMaster(fields[i])
        end
    end
end
return fromMaster(nil)
