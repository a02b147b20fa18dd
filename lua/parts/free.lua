-- Frees the lock; without a right to DEL, or without DEL, by the command that every grant needs.
if type(redis.pcall('DEL', KEYS[1])) == 'table' then
    redis.call('PEXPIRE', KEYS[1], '0')
end
