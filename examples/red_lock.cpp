#include <redislock/redislock.hpp>

#include <chrono>
#include <deque>
#include <iostream>
#include <vector>

using namespace std::chrono_literals;

// One lock on several independent servers: red_lock redis://a:6379 redis://b:6379 redis://c:6379
int main(int argc, char** argv)
{
    try {
        std::deque<redislock::Client> clients;
        std::vector<redislock::RedisLock> members;
        for (int i = 1; i < argc; ++i) {
            members.push_back(clients.emplace_back(argv[i]).getLock("stock:42"));
        }
        const redislock::RedLock lock(members);

        redislock::GroupGuard held(lock, 2s, 10s); // waits at most 2 s; the lease is 10 s
        if (!held) {
            std::cout << "others hold stock:42 on a majority of the servers\n";
            return 1;
        }
        std::cout << "stock:42 is ours on " << held.heldMembers() << " of " << members.size()
                  << " servers, for another " << held.validFor().count() << " ms\n";
        held.release();
    } catch (const redislock::LockError& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
