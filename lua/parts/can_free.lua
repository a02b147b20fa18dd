-- Where there is no key: ends the script if DEL, which a release needs, is not there or not permitted.
local removed = redis.pcall('DEL', KEYS[1])
if removed ~= 0 then
    local unknown = string.find(removed.err, 'Unknown Redis command', 1, true)
    return unknown and redis.error_reply("ERR unknown command 'DEL', which a release needs") or removed
end
