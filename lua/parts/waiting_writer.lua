-- KEYS[2]  what the lock's other keys begin with
-- A writer that waits for readers writes this key: '<ms> <writer>', with a time to live of twice those ms. During the
-- first half no other reader comes in; during the second half readers do, so that readers that need each other get on.
local waitingWriter = KEYS[2] .. ':redislock_writer'
