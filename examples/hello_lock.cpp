#include <redislock/redislock.hpp>

#include <iostream>
#include <mutex>

int main(int argc, char** argv)
{
    try {
        redislock::Client client(argc > 1 ? argv[1] : "redis://127.0.0.1:6379");
        redislock::RedisLock lock = client.getLock("stock:42");

        std::scoped_lock held(lock); // waits for its turn, in whatever process the others run
        std::cout << "stock:42 is ours until the end of this scope\n";
    } catch (const redislock::LockError& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
