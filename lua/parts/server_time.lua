-- The server's time: `time` as TIME gives it, `now` in ms since 1970.
if redis.replicate_commands then
    redis.replicate_commands() -- before version 7 a script that asks for the time may otherwise not write
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
