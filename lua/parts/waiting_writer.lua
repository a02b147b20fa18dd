-- KEYS[2]  what the lock's other keys begin with
-- A writer that readers keep out says so in this key: '<ms> <writer>', with a time to live of twice those ms. For the first
-- half of it no other reader comes in; in the second one they do, so that readers who need each other get on.
local waitingWriter = KEYS[2] .. ':redislock_writer'
