-- `held`: the count of ARGV[1]; false: it has no lock. Ends the script if the key is no hash.
local held = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(held) == 'table' then
    return fromMaster(held)
end
