-- Included after server_time.lua. The queue of a fair lock, in which waiters of Redisson may stand among ours.
-- doc/keys.md, "Places in a fair queue", says who writes, moves and ends the times, and by which clock.
-- KEYS[2]  the queue: list of holders, the next one first
-- KEYS[3]  until when Redisson lets each waiter keep its place: sorted set holder -> ms since 1970
-- KEYS[4]  what our scripts know of the waiters: a hash
--          of ours: holder -> "<until> <place> <came>": until when its place is kept, for how long each request keeps
--            it, and when it came; followed by " <lease> <request>" if its client listens on a channel of its own: the
--            lease that it wants, and the number of the request; with > behind it if it listens on a sharded channel in
--            the slot of the name
--          of Redisson's: holder -> "redisson <time> <allowance>": its time in KEYS[3] when it was first seen, and what
--            Redisson takes off all times behind it when it lets it in; followed by " about" if that is an estimate
--          'redisson' -> while a waiter of Redisson's may be queued: "<since> <time> <holder>" of the one that our
--            scripts have found first since then while the lock was free; '' if there is none
local clocks = 30000 -- by how much the clocks of Redisson's machines may be off, in ms
local usual = 300000 -- the allowance of a waiter of Redisson's of which nothing is known, in ms
local longest = 2592000000 -- the most by which waiters ahead may move a time, in ms
local most = 500 -- how many waiters are looked at
local grace = 2000 -- how much longer than its allowance a waiter of Redisson's may be first while the lock is free
local last, lastRecord -- the last waiter in the queue, and what is known of it, as noteRedissons() found them
local ownRecord -- what is known of the waiter that asks
local firstFree -- the field 'redisson'; nil: none of Redisson's is known to wait

-- From the record of one of our waiters: until when its place is kept, for how long each request keeps it, and when it
-- came; if its client listens, also the lease that it wants and the number of its request. nil from another record.
local function ours(record)
    local untilThen, place, came, lease, request =
        string.match(record or '', '^(%d+) (%d+) (%d+) ?(%d*) ?(%d*>?)$')
    return tonumber(untilThen), tonumber(place), tonumber(came), tonumber(lease or ''), request
end

-- Makes the record of one of our waiters.
local function recordOf(untilThen, place, came, lease, request)
    local record = string.format('%.0f %.0f %.0f', untilThen, place, came)
    return lease and string.format('%s %.0f %s', record, lease, request) or record
end

-- Whether a holder's name is one of ours: the random UUIDs of our clients are of version 8, those of Redisson's of
-- version 4.
local function isNameOfOurs(holder)
    return string.sub(holder, 15, 15) == '8'
end

-- From the record of a waiter of Redisson's: its time when it was first seen, its allowance, and ' about' if that is an
-- estimate; nil from another record.
local function redissons(record)
    local seen, allowance, about = string.match(record or '', '^redisson (%d+) (%d+)( ?%a*)$')
    return tonumber(seen), tonumber(allowance), about
end

local function scoreOf(holder)
    return tonumber(redis.call('ZSCORE', KEYS[3], holder) or '')
end

-- Notes the allowances of Redisson's waiters behind the last of ours: how far a time is ahead of that of the waiter
-- before it, or of the end of the hold. The latter is an estimate, since a hold may have been renewed; so is an
-- allowance behind a higher time: another waiter stood between the two. `longestFirst`: the most for the former.
local function noteAllowances(longestFirst)
    local since, waiter, record = {}, last, lastRecord
    while waiter and #since < most and not ours(record) do
        since[#since + 1] = {waiter, scoreOf(waiter), record}
        waiter = redis.call('LINDEX', KEYS[2], -1 - #since)
        record = waiter and redis.call('HGET', KEYS[4], waiter)
    end
    local before = waiter and scoreOf(waiter)
    local isNew = false -- came since: it has no record, or that of an earlier wait, or is behind another that came
    for i = #since, 1, -1 do
        local score = since[i][2]
        local seen, allowance, about = redissons(since[i][3])
        local more = score and score - (before or now + math.max(0, redis.call('PTTL', KEYS[1])))
        isNew = isNew or not seen or score and score > seen
        if score and isNew then
            seen, allowance = score, before and more or math.min(more, longestFirst)
            about = before and more >= 0 and '' or ' about'
        elseif score and before then -- the record may be that of an earlier wait with a smaller allowance
            allowance = math.max(allowance, math.min(more, usual))
        end
        if seen then
            local new = string.format('redisson %.0f %.0f%s', seen, math.max(0, math.min(allowance, longest)), about)
            if new ~= since[i][3] then
                redis.pcall('HSET', KEYS[4], since[i][1], new)
            end
        end
        before = score or before
    end
end

-- Waiters with a record that are not queued: Redisson took out those of ours that still have their places, since it had
-- taken more off their times than we knew, or its clock is far ahead. It takes out the first only; so they go back to
-- the front, in the order in which they came. The records of all others are deleted.
local function mendQueue()
    local queued, lost = {redisson = true}, {}
    local waiters = redis.call('LRANGE', KEYS[2], 0, most - 1)
    for _, waiter in ipairs(waiters) do
        queued[waiter] = true
    end
    local all = #waiters < most and redis.call('HGETALL', KEYS[4]) or {}
    for i = 1, #all, 2 do
        local untilThen, _, came = ours(all[i + 1])
        if not queued[all[i]] and untilThen and untilThen > now then
            lost[#lost + 1] = {all[i], came, untilThen}
        elseif not queued[all[i]] then
            redis.call('HDEL', KEYS[4], all[i])
        end
    end
    table.sort(lost, function(a, b) return a[2] > b[2] end)
    for _, each in ipairs(lost) do
        if type(redis.pcall('LPUSH', KEYS[2], each[1])) == 'number' then
            redis.pcall('ZADD', KEYS[3], string.format('%.0f', each[3] + clocks), each[1])
        end
    end
end

-- Looks at Redisson's waiters. Done before any time is changed, since an allowance is how far a waiter's time is ahead
-- of that of the waiter before it. `comes`: one of our waiters that may join. Returns whether any of Redisson's may be
-- queued. pcall: a lock can be freed even if memory is full.
local function noteRedissons(comes)
    last = redis.call('LINDEX', KEYS[2], -1)
    if not last then
        if redis.call('EXISTS', KEYS[4]) == 0 then -- a mere question must not write in vain: a server may refuse it
            return false
        end
        mendQueue()
        last = redis.call('LINDEX', KEYS[2], -1)
        if not last then
            redis.call('DEL', KEYS[4])
            return false
        end
        redis.call('HDEL', KEYS[4], 'redisson')
        for i = 2, 4 do
            redis.call('PEXPIRE', KEYS[i], '600000')
        end
    end
    local known = redis.call('HMGET', KEYS[4], last, 'redisson', comes or last)
    lastRecord, firstFree, ownRecord = known[1], known[2], known[3]
    local isOurs = ours(lastRecord) ~= nil
    if not firstFree and (isOurs or not comes and redis.call('EXISTS', KEYS[4]) == 0) then
        return not isOurs -- none of Redisson's waits, or none of ours
    end
    -- A time from when ours waited too may have what those that are gone counted: times would drift.
    local longestFirst = firstFree and usual or longest
    if not firstFree then
        firstFree = ''
        redis.pcall('HSET', KEYS[4], 'redisson', '')
    end
    if not isOurs then
        noteAllowances(longestFirst)
    end
    if redis.call('HLEN', KEYS[4]) > redis.call('LLEN', KEYS[2]) + 1 then
        mendQueue()
    end
    if redis.call('PTTL', KEYS[4]) == -1 then
        redis.call('PEXPIRE', KEYS[4], '600000')
    end
    return true
end

-- Ends a script while a waiter of Redisson's is queued: Redisson's two keys live until Redisson deletes them.
local function keepMixedQueue()
    redis.pcall('PERSIST', KEYS[2])
    redis.pcall('PERSIST', KEYS[3])
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
            sum = sum + (isAhead and allowance or 0)
        end
    end
    if #waiters == most then
        return math.min(sum, longest), true
    end
    if not isAny then -- from now on nobody puts back whom Redisson takes out, after an allowance that was too small
        for i, waiter in ipairs(waiters) do
            redis.call('ZADD', KEYS[3], string.format('%.0f', ours(records[i]) + clocks), waiter)
        end
        redis.call('HDEL', KEYS[4], 'redisson')
    end
    return math.min(sum, longest), isAny
end

-- After the server's clock was set back: no place of ours is kept for longer than if its waiter asked now.
local function capPlaces()
    local all = redis.call('HGETALL', KEYS[4])
    for i = 1, #all, 2 do
        local untilThen, place, came, lease, request = ours(all[i + 1])
        if untilThen and untilThen > now + place then
            redis.call('HSET', KEYS[4], all[i], recordOf(now + place, place, came, lease, request))
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

-- Until when a waiter of Redisson's that is the first may keep its place while the lock is free, and since when it is:
-- for its allowance or, if that is less, until its time is over, and for a moment more. Nothing else shows whether it
-- lives. `before`: since when the one was that has just lost its place; the next whose time is over has no moment of
-- its own. pcall: if the moment cannot be noted, the place is kept for longer.
local function turnOfRedissons(head, record, before)
    local text = redis.call('ZSCORE', KEYS[3], head)
    local time = tonumber(text or '')
    if not time then
        return 0 -- an entry that Redisson would leave there for ever
    end
    if not firstFree then
        return time + clocks -- none of ours waits
    end
    local since, timeThen, who = string.match(firstFree, '^(%d+) (%d+) (.*)$')
    since = tonumber(since)
    if who ~= head or timeThen ~= text or since > now then
        since = time <= now and before or now
        firstFree = string.format('%.0f %s %s', since, text, head)
        redis.pcall('HSET', KEYS[4], 'redisson', firstFree)
    end
    local _, allowance, about = redissons(record)
    allowance = (allowance or usual) + (about == ' about' and clocks or 0)
    return since + math.max(0, math.min(allowance, time - since)) + grace, since
end

-- Returns whose turn it is, until when that place is kept, and the rest of the record if it is one of ours. Waiters
-- ahead that stopped asking lose their places; those of Redisson's only while the lock is free.
local function liveHead(isFree)
    if not isFree and firstFree and firstFree ~= '' then
        firstFree = ''
        redis.pcall('HSET', KEYS[4], 'redisson', '')
    end
    local since
    while true do
        local head = redis.call('LINDEX', KEYS[2], 0)
        if not head then
            return nil
        end
        local record = head == last and lastRecord or redis.call('HGET', KEYS[4], head)
        local untilThen, place, _, lease, request = ours(record)
        if untilThen and untilThen > now + place then
            capPlaces()
            untilThen = now + place
        end
        if not untilThen and isFree then
            untilThen, since = turnOfRedissons(head, record, since)
        end
        untilThen = untilThen or math.huge
        if untilThen > now then
            return head, untilThen, place, lease, request
        end
        leave(head)
    end
end

-- The lock is free: grants it to the first waiter in the queue, or notifies that waiter. Only a waiter of ours whose
-- client listens can be granted it, and only if both its place and the lease that it wants last for two more of its
-- polls (of the five for which a place is kept): its client takes off that time all that went by since it asked. It has
-- the lock for as long as it would have had the place, or for its lease if that is shorter. All others are only
-- notified, and ask. `channels`: what waiters' channels begin with.
-- Returns the first waiter, until when its place was kept, for how long it has the lock (0: it does not), and how many
-- were told.
-- pcall: neither a refused grant nor a refused message must look like a failed unlock; the waiters then find out by
-- polling.
local function grantNext(channels)
    local head, headUntil, place, lease, request = liveHead(true)
    if not head then
        return nil
    end
    local client, number = string.match(head, '^(.*):(%d+)$')
    if not lease or not client then
        return head, headUntil, 0, publish(channels .. head, '0')
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
    local message = string.format('%s %s %.0f ', number, string.match(request, '%d+'), lasts) .. KEYS[1]
    local isSharded = string.find(request, '>', 1, true)
    local channel = isSharded and '>' .. string.match(channels, '[^>*].*') or 'redisson_lock__channel:'
    return head, headUntil, lasts, publish(channel .. client, message)
end
