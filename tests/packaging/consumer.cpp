// A program of a user of the package; the three consumer projects beside this file build it.
#include <redislock/redislock.hpp>
#include <redislock/testing/redis_server.hpp>

#include <iostream>
#include <mutex>

int main()
{
    redislock::testing::RedisServer server;
    redislock::Client client(server.url());
    auto lock = client.getLock("packaging");
    {
        std::scoped_lock held(lock);
        if (!lock.isHeldByCurrentThread()) {
            return 1;
        }
    }
    std::cout << "redislock " << redislock::version << " took a lock and gave it back\n";
    return lock.isLocked() ? 1 : 0;
}
