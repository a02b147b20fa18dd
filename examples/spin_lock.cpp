// A lock that is held for microseconds: its waiters poll, as a retry policy says, and need no subscription.
#include "shared/command_line.hpp"

#include <redislock/redislock.hpp>

#include <chrono>
#include <future>
#include <iostream>
#include <string>
#include <vector>

using namespace std::chrono_literals;

namespace {

bool giveOutNumbers(const std::string& url)
{
    // asks three times at once, then every millisecond; exponential(), fixed(), or a function of your own work too
    const auto retry = redislock::RetryPolicy::spinThenSleep(3, 1ms);
    int next = 0; // stands for data outside Redis; a number in Redis has INCR
    {
        std::vector<std::future<void>> threads;
        for (int thread = 0; thread < 2; ++thread) {
            threads.push_back(std::async(std::launch::async, [&] {
                // each thread has a client of its own, as another process would have; connect() reports a wrong address
                const redislock::Client client(url);
                client.connect();
                const redislock::SpinLock lock = client.getSpinLock("example:next", retry);
                for (int i = 0; i < 100; ++i) {
                    if (const redislock::LockGuard held(lock, 10s, 1s); held) {
                        ++next;
                    }
                }
            }));
        }
        for (auto& thread : threads) {
            thread.get(); // rethrows an exception of the thread
        }
    }
    std::cout << next << " numbers were given out\n";
    return next == 200;
}

} // namespace

int main(int argc, char** argv)
{
    return example::run(argc, argv,
                        "Gives out 200 numbers from two clients, under a lock that is held for microseconds.",
                        giveOutNumbers);
}
