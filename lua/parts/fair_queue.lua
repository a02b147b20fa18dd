-- After server_time.lua. Whose turn it is, and until when that place is kept; those ahead who stopped asking lose theirs.
-- KEYS[2]  the queue: list of holders, the next one first
-- KEYS[3]  until when each of them keeps its place: sorted set holder -> ms since 1970
local function liveHead()
    while true do
        local head = redis.call('LINDEX', KEYS[2], 0)
        local score = head and tonumber(redis.call('ZSCORE', KEYS[3], head) or '0')
        if not head or score > now then
            return head, score
        end
        redis.call('LPOP', KEYS[2])
        redis.call('ZREM', KEYS[3], head)
    end
end
