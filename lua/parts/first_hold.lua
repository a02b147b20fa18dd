-- Makes the hold of ARGV[1] with a lease of ARGV[2] ms, where there is no key; ends the script if that is refused.
redis.call('HSET', KEYS[1], ARGV[1], '1')
local expires = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
if expires ~= 1 then -- better no lock than one that stays for ever
    redis.call('DEL', KEYS[1])
    return expires
end
