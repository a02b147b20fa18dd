-- Publishes a message, and returns how many it was told to. `channel` begins with > if it is a sharded one, with * if
-- the message goes both to the sharded and to the other channel of that name. Where there are no sharded channels, or
-- the user has no right to them, the other takes their place.
-- pcall: a refused publish must not look like a failed request; the waiters then find out by polling
local function publish(channel, message)
    local mark = string.byte(channel)
    if mark ~= 62 and mark ~= 42 then
        return redis.pcall('PUBLISH', channel, message)
    end
    channel = string.sub(channel, 2)
    local told = redis.pcall('SPUBLISH', channel, message)
    if type(told) == 'number' and mark == 62 then
        return told
    end
    local others = redis.pcall('PUBLISH', channel, message)
    return type(told) == 'number' and type(others) == 'number' and math.max(told, others) or others
end
