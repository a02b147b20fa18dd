-- How long a permit is leased, or a new lease for it from now on. May be sent again.
-- KEYS[1]  the semaphore's name: free permits, a decimal string
-- KEYS[2]  zset of permits taken: id -> end of its lease, epoch ms; 922337203685477 for none
-- KEYS[3]  the id's record: the number of the latest change of its lease; with it, an acquire of that id does nothing
-- ARGV[1]  id, 16 bytes
-- ARGV[2]  new lease in ms, 10 .. 2592000000; 0: non-expiring; '' to leave it as it is
-- ARGV[3]  number of the change, which has no effect if a later one was recorded; 0: the change is not numbered
-- ARGV[4]  how long copies of earlier requests for that id may still arrive, in ms; 0: none can
-- Returns  how long the lease still is, in ms, 1 or more; -1: non-expiring; nil: nobody has a permit of that id, or its
--          lease is over
-- Clock    the server's TIME
-- Effects  writes KEYS[2], if there is a new lease, and then KEYS[3] with ARGV[4] as its time to live, unless that is
--          0; a key of another type is left alone (WRONGTYPE). A permit whose lease is over stays for acquire.lua and
--          count.lua, which free it
-- Digits only: tonumber alone would also take '1e3', '0x10' and ' 10'.
local lease = tonumber(string.match(ARGV[2] or '', '^%d+$'))
local number = tonumber(string.match(ARGV[3] or '', '^%d+$'))
local keep = tonumber(string.match(ARGV[4] or '', '^%d+$'))
if #KEYS ~= 3 or #ARGV ~= 4 or #ARGV[1] ~= 16 or not number or not keep
    or ARGV[2] ~= '' and (not lease or lease > 0 and lease < 10 or lease > 2592000000) then
    return redis.error_reply('ERR redislock: bad arguments to lease')
end
--include parts/from_master.lua
--include parts/server_time.lua
local till = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or '0')
if till <= now then
    return fromMaster(nil, 'ZREM', KEYS[2], 'redislock_probe')
end
local latest = tonumber(redis.call('GET', KEYS[3]) or '0')
if lease and (number == 0 or number >= latest) then
    till = lease == 0 and 922337203685477 or now + lease
    redis.call('ZADD', KEYS[2], string.format('%.0f', till), ARGV[1])
    if keep > 0 then
        redis.call('SET', KEYS[3], ARGV[3], 'PX', ARGV[4])
    end
end
return fromMaster(till >= 922337203685477 and -1 or till - now, 'ZREM', KEYS[2], 'redislock_probe')
