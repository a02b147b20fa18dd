-- Frees the lock; where DEL is missing, by what every grant needs.
if type(redis.pcall('DEL', KEYS[1])) == 'table' then
    redis.call('PEXPIRE', KEYS[1], '0')
end
