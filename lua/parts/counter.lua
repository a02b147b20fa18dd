-- The counter's text; nil where there is none.
local counter = redis.call('GET', KEYS[1])
if counter and not string.match(counter, '^-?%d+$') then
    return redis.error_reply('WRONGTYPE redislock: the key is no counter')
end
