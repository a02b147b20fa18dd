-- `held`: the count of ARGV[1], a text; false if it does not have the lock. Ends the script if the key is no hash.
local held = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(held) == 'table' then
    return fromMaster(held)
end
