#include <iostream>
#include <mutex>
#include <redislock/redislock.hpp>

int main(int argc, char** argv)
try {
    const std::string_view url = argc > 1 ? argv[1] : "redis://127.0.0.1:6379";
    std::cout << "hello_lock [URL]: takes the lock stock:42 and gives it back\n";
    if (url == "--help") {
        return 0;
    }
    redislock::Client client(url);
    client.connect(); // optional: shows a wrong address at once
    redislock::RedisLock lock = client.getLock("stock:42");
    std::scoped_lock held(lock); // waits for its turn, in whatever process the others run
    std::cout << "stock:42 is ours until the end of this scope\n";
} catch (const redislock::LockError& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
