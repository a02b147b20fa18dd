-- Ends a script that has written nothing: `value` is an answer only if this server takes writes, since a replica may be
-- behind. Asks for a write that changes, and replicates, nothing: a replica refuses it all the same. Its refusal is
-- returned instead of `value`. Another refusal (a right, the disk, too few replicas) comes from a master: `value` stands.
-- `...`: that write; none: to delete a field that no lock has.
local function fromMaster(value, ...)
    -- versions 5 and 6 would replicate an empty transaction; nothing follows in this script
    if redis.set_repl and not redis.REDIS_VERSION_NUM and redis.replicate_commands() then
        redis.set_repl(redis.REPL_NONE)
    end
    local probe
    if ... then
        probe = redis.pcall(...)
    else
        probe = redis.pcall('HDEL', KEYS[1], 'redislock_probe')
    end
    -- before version 7 as "@user_script: 12: -READONLY …"
    return type(probe) == 'table' and string.find(': -' .. (probe.err or ''), ': -READONLY ', 1, true) and probe or value
end
