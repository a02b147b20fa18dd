-- The hold of ARGV[1], where there is no key, with a lease of ARGV[2] ms; ends the script where that is not permitted.
redis.call('HSET', KEYS[1], ARGV[1], '1')
local expires = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
if expires ~= 1 then -- better no lock than one that stays for ever
    redis.call('DEL', KEYS[1])
    return expires
end
