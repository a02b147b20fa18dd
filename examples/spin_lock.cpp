// A lock that is held for microseconds: its waiters ask again by a policy, and cost no subscription and no message.
#include <redislock/redislock.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

int main(int argc, char** argv)
{
    try {
        const std::string url = argc > 1 ? argv[1] : "redis://127.0.0.1:6379";
        // three times at once, then every millisecond; exponential(), fixed(), or a function of your own do as well
        const auto retry = redislock::RetryPolicy::spinThenSleep(3, 1ms);
        int next = 0; // stands for something outside of Redis; what is in Redis has INCR
        {
            std::vector<std::jthread> threads;
            for (int thread = 0; thread < 2; ++thread) {
                threads.emplace_back([&] {
                    std::error_code ec;
                    redislock::Client client(url); // a process of its own
                    const redislock::SpinLock lock = client.getSpinLock("example:next", retry);
                    for (int i = 0; i < 100; ++i) {
                        if (redislock::LockGuard held(lock, 10s, 1s, ec); held) {
                            ++next;
                        } else {
                            std::cerr << ec.message() << '\n';
                        }
                    }
                });
            }
        }
        std::cout << next << " numbers were given out\n";
        return next == 200 ? 0 : 1;
    } catch (const redislock::LockError& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
