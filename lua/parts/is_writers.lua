-- Whether a field of a read/write lock is a writer's: "<client>:<number>:write", in Redisson perhaps with ":" and the
-- id of a transaction.
local function isWriters(field)
    return string.sub(field, -6) == ':write' or string.match(field, ':%-?%d+:write:') ~= nil
end
