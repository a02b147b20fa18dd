-- KEYS[2]  what the hold keys of readers begin with
-- The hold key of a level: it is '1', and lives as long as the lease of that level.
local function holdKey(reader, level)
    return KEYS[2] .. ':' .. reader .. ':rwlock_timeout:' .. string.format('%.0f', level)
end
-- How long the last of the readers may stay, in ms; 0: all their leases are over.
local function longestRead()
    local longest = 0
    local fields = redis.call('HGETALL', KEYS[1])
    for i = 1, #fields, 2 do
        for level = 1, tonumber(fields[i + 1]) or 0 do
            longest = math.max(longest, redis.call('PTTL', holdKey(fields[i], level)))
        end
    end
    return longest
end
