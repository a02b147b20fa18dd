-- Included after server_time.lua. The queue of a fair lock, in which waiters of Redisson may stand among ours.
-- doc/keys.md, "Places in a fair queue", says who writes, moves and ends the times, and by which clock.
-- KEYS[2]  the queue: list of holders, the next one first
-- KEYS[3]  until when Redisson lets each waiter keep its place: sorted set holder -> ms since 1970
-- KEYS[4]  what our scripts know of the waiters: a hash
--          of ours: holder -> "<until> <place>": until when its place is kept, and for how long each request keeps it;
--            followed by " <lease> <request>" if its client listens on a channel of its own: the lease that it wants,
--            and the number of the request
--          of Redisson's: holder -> "redisson <time> <allowance>": its time in KEYS[3] when it was first seen, and what
--            Redisson takes off all times behind it when it lets it in
--          'redisson' -> "<time> <base> <last>" while a waiter of Redisson's may be queued: when one of our scripts
--            last looked, the last waiter's time in KEYS[3] less its allowance, and which waiter was the last, both as
--            that script left them
local clocks = 30000 -- by how much the clocks of Redisson's machines may be off, in ms
local usual = 300000 -- the allowance of a waiter of Redisson's if nothing better is known, in ms
local longest = 2592000000 -- the most by which waiters ahead may move a time, in ms
local most = 500 -- how many waiters are looked at
local lately = 1000 -- for so long a waiter of Redisson's is assumed not to have left and come again, in ms
local last, lastRecord -- the last waiter in the queue, and what is known of it, as noteRedissons() found them

-- From the record of one of our waiters: until when its place is kept, and for how long each request keeps it; if its
-- client listens, also the lease that it wants and the number of its request. nil from another record.
local function ours(record)
    local untilThen, place, lease, request = string.match(record or '', '^(%d+) (%d+) ?(%d*) ?(%d*)$')
    return tonumber(untilThen), tonumber(place), tonumber(lease or ''), request
end

-- Makes the record of one of our waiters.
local function recordOf(untilThen, place, lease, request)
    local record = string.format('%.0f %.0f', untilThen, place)
    return lease and string.format('%s %.0f %s', record, lease, request) or record
end

-- Whether a holder's name is one of ours: the random UUIDs of our clients are of version 8, those of Redisson's of
-- version 4.
local function isNameOfOurs(holder)
    return string.sub(holder, 15, 15) == '8'
end

-- From the record of a waiter of Redisson's: its time when it was first seen, and its allowance; nil from another
-- record.
local function redissons(record)
    local seen, allowance = string.match(record or '', '^redisson (%d+) (%d+)$')
    return tonumber(seen), tonumber(allowance)
end

local function scoreOf(holder)
    return tonumber(redis.call('ZSCORE', KEYS[3], holder) or '')
end

-- Deletes the records of waiters that are not queued any more, if the queue is short enough to be read whole.
local function forgetLeavers()
    if redis.call('HLEN', KEYS[4]) <= redis.call('LLEN', KEYS[2]) + 1 then
        return
    end
    local queued = {redisson = true}
    local waiters = redis.call('LRANGE', KEYS[2], 0, most - 1)
    for _, waiter in ipairs(waiters) do
        queued[waiter] = true
    end
    for _, field in ipairs(#waiters < most and redis.call('HKEYS', KEYS[4]) or {}) do
        if not queued[field] then
            redis.call('HDEL', KEYS[4], field)
        end
    end
end

-- Notes the allowances of Redisson's waiters that came since one of our scripts last looked. Done before any time is
-- changed, since an allowance is how far a waiter's time is ahead of that of the waiter before it. `comes`: one of our
-- waiters may join. Returns whether any of Redisson's may be queued. pcall: a lock can be freed even if memory is full.
local function noteRedissons(comes)
    last = redis.call('LINDEX', KEYS[2], -1)
    if not last then
        if redis.call('EXISTS', KEYS[4]) == 1 then -- a mere question must not write in vain: a server may refuse it
            redis.call('DEL', KEYS[4])
        end
        return false
    end
    local known = redis.call('HMGET', KEYS[4], last, 'redisson')
    lastRecord = known[1]
    local isOurs = ours(lastRecord) ~= nil
    local looked, base, lastThen = string.match(known[2] or '', '^(%d+) (-?%d+) (.*)$')
    if not looked and (isOurs or not comes and redis.call('EXISTS', KEYS[4]) == 0) then
        return not isOurs -- none of Redisson's waits, or none of ours
    end
    if looked then
        forgetLeavers()
    end
    if isOurs then
        return true
    end
    local isWatched = looked and now - tonumber(looked) < lately
    -- From the last waiter back to the last of ours, past those that are known: a thread that comes again may have left
    -- its record here.
    local since, waiter, record = {}, last, lastRecord
    while waiter and #since < most and not ours(record) do
        since[#since + 1] = {waiter, scoreOf(waiter), record}
        waiter = redis.call('LINDEX', KEYS[2], -1 - #since)
        record = waiter and redis.call('HGET', KEYS[4], waiter)
    end
    local before = waiter and scoreOf(waiter)
    local isSure = false
    for i = #since, 1, -1 do
        local score = since[i][2] or 0
        -- The first that came since may have come behind one that is gone, whose time was lower than that of the
        -- waiter before it now.
        local isBehindLast = isSure or not looked or lastThen == (i < #since and since[i + 1][1] or waiter)
        local isHigher = isBehindLast or i < #since and tonumber(base) >= before
        local more = before and score - before or -1 -- than the time of the waiter before it
        local seen, allowance = redissons(since[i][3])
        -- It came since: it has no record, or a higher time than in a record left of an earlier wait, or is behind
        -- another that came.
        isSure = isSure or not seen or score > seen
        if not since[i][2] then
            allowance = 0 -- its place is over as soon as it is the first
        elseif isSure and more >= 0 then
            allowance = isHigher and more or math.max(usual, more)
        elseif isSure or more < 0 and not waiter and not isWatched then
            -- How long the first has been there is not known. Its time may come from waiters of ours before it.
            local sinceFree = not looked and score - now - math.max(0, redis.call('PTTL', KEYS[1])) or 0
            allowance = math.max(usual, allowance or 0, sinceFree)
        else
            -- The record may be left of an earlier wait with a smaller allowance.
            allowance = math.max(allowance, math.min(more, usual))
        end
        local new = string.format('redisson %.0f %.0f', isSure and score or seen, math.min(allowance, longest))
        if new ~= since[i][3] then
            redis.pcall('HSET', KEYS[4], since[i][1], new)
        end
        before = score
    end
    if redis.call('PTTL', KEYS[4]) == -1 then
        redis.call('PEXPIRE', KEYS[4], '600000')
    end
    return true
end

-- Ends a script while a waiter of Redisson's is queued: Redisson's two keys live until Redisson deletes them. Notes
-- which waiter is the last now, if anything is known of the queue.
local function keepMixedQueue()
    redis.pcall('PERSIST', KEYS[2])
    redis.pcall('PERSIST', KEYS[3])
    local newLast = redis.call('EXISTS', KEYS[4]) == 1 and redis.call('LINDEX', KEYS[2], -1)
    if newLast then
        local _, allowance = redissons(redis.call('HGET', KEYS[4], newLast))
        local base = (scoreOf(newLast) or 0) - (allowance or 0)
        redis.pcall('HSET', KEYS[4], 'redisson', string.format('%.0f %.0f %s', now, base, newLast))
    end
end

-- How much Redisson will have taken off a holder's time when its turn comes: the allowances of the waiters ahead. Also
-- returns whether any waiter of Redisson's is queued.
local function allowancesAhead(holder)
    local waiters = redis.call('LRANGE', KEYS[2], 0, most - 1)
    local records = redis.call('HMGET', KEYS[4], unpack(waiters))
    local sum, isAhead, isAny = 0, true, false
    for i, waiter in ipairs(waiters) do
        isAhead = isAhead and waiter ~= holder
        if waiter ~= holder and not ours(records[i]) then
            isAny = true
            local _, allowance = redissons(records[i])
            sum = sum + (isAhead and (allowance or usual) or 0)
        end
    end
    if #waiters == most then
        return math.min(sum, longest), true
    end
    if not isAny then
        redis.call('HDEL', KEYS[4], 'redisson')
    end
    return math.min(sum, longest), isAny
end

-- After the server's clock was set back: no place of ours is kept for longer than if its waiter asked now.
local function capPlaces()
    local all = redis.call('HGETALL', KEYS[4])
    for i = 1, #all, 2 do
        local untilThen, place, lease, request = ours(all[i + 1])
        if untilThen and untilThen > now + place then
            redis.call('HSET', KEYS[4], all[i], recordOf(now + place, place, lease, request))
            local score = scoreOf(all[i])
            if score then
                redis.call('ZADD', KEYS[3], string.format('%.0f', score - (untilThen - now - place)), all[i])
            end
        end
    end
end

-- Takes the first waiter out of the queue.
local function leave(head)
    redis.call('LPOP', KEYS[2])
    redis.call('ZREM', KEYS[3], head)
    redis.call('HDEL', KEYS[4], head)
end

-- Returns whose turn it is, until when that place is kept, and the rest of the record if it is one of ours. Waiters
-- ahead that stopped asking lose their places.
local function liveHead()
    while true do
        local head = redis.call('LINDEX', KEYS[2], 0)
        if not head then
            return nil
        end
        local record = head == last and lastRecord or redis.call('HGET', KEYS[4], head)
        local untilThen, place, lease, request = ours(record)
        if untilThen and untilThen > now + place then
            capPlaces()
            untilThen = now + place
        end
        untilThen = untilThen or scoreOf(head) or 0
        if untilThen > now then
            return head, untilThen, place, lease, request
        end
        leave(head)
    end
end

-- The lock is free: grants it to the first waiter in the queue, and tells that waiter. Only a waiter of ours whose
-- client listens can be granted it, and only if both its place and the lease that it wants last for two more of its
-- polls (of the five for which a place is kept): its client takes off that time all that went by since it asked. It has
-- the lock for as long as it would have had the place, or for its lease if that is shorter. All others are only told,
-- and ask. `channels`: what waiters' channels begin with.
-- Returns the first waiter, until when its place was kept, for how long it has the lock (0: it does not), and how many
-- were told.
-- pcall: neither a refused grant nor a refused message must look like a failed unlock; the waiters then find out by
-- polling.
local function passOn(channels)
    local head, headUntil, place, lease, request = liveHead()
    if not head then
        return nil
    end
    local client, number = string.match(head, '^(.*):(%d+)$')
    if not lease or not client then
        return head, headUntil, 0, redis.pcall('PUBLISH', channels .. head, '0')
    end
    local lasts = math.floor(math.min(headUntil - now, lease))
    if lasts < place * 2 / 5 or redis.pcall('HSET', KEYS[1], head, '1') ~= 1 then
        lasts = 0
    elseif redis.pcall('PEXPIRE', KEYS[1], string.format('%.0f', lasts)) == 1 then
        leave(head)
    else
        redis.call('DEL', KEYS[1])
        lasts = 0
    end
    local message = string.format('%s %s %.0f ', number, request, lasts) .. KEYS[1]
    return head, headUntil, lasts, redis.pcall('PUBLISH', 'redisson_lock__channel:' .. client, message)
end
