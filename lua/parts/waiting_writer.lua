-- KEYS[2]  what the lock's other keys begin with
-- A writer that waits for readers writes this key: '<ms> <writer>', with a time to live of twice those ms. During the
-- first half no other reader comes in; during the second half readers do, so that readers that need each other get on.
-- Redisson's writers do not. So where readers take turns and somebody listens for their end, a reader's release writes
-- '<ms>/<open>', with a time to live of both: no other reader comes in for `ms`, and then readers do for `open`, which
-- is nine times as long as they were kept out; if a writer came meanwhile, the next reader that it refuses ends this.
local waitingWriter = KEYS[2] .. ':redislock_writer'
