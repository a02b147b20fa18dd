-- `leases`: each ARGV[2i], a lease in ms, as a number; ARGV[2i-1] is not empty. Ends the script unless there are
-- `locks` pairs, 1 .. 1000. Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local leases, good = {}, locks >= 1 and locks <= 1000 and locks % 1 == 0 and #ARGV == 2 * locks
for i = 1, good and #ARGV or 0, 2 do
    local text = ARGV[i + 1]
    local lease = leases[text] or tonumber(string.match(text, '^[1-9]%d*$'))
    good = good and ARGV[i] ~= '' and lease and lease >= 10 and lease <= 2592000000
    leases[text] = lease
end
if not good then
    return redis.error_reply('ERR redislock: bad arguments to renew')
end
