-- Ends a script that has written nothing: `value` counts only if this server takes writes; a replica may be behind.
-- `...`: a write that changes nothing; by default deletes a field that no lock has. A replica refuses even that, and
-- its refusal is returned. Any other refusal is a master's.
local function fromMaster(value, ...)
    if redis.set_repl and not redis.REDIS_VERSION_NUM and redis.replicate_commands() then
        redis.set_repl(redis.REPL_NONE) -- 5 and 6 would replicate an empty transaction
    end
    local probe
    if ... then
        probe = redis.pcall(...)
    else
        probe = redis.pcall('HDEL', KEYS[1], 'redislock_probe')
    end
    -- before version 7: "@user_script: 12: -READONLY …"
    return type(probe) == 'table' and string.find(': -' .. (probe.err or ''), ': -READONLY ', 1, true) and probe or value
end
