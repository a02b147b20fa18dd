// A start that waits until three workers are ready, wherever they run.
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
        redislock::Client client(url);
        const redislock::CountDownLatch ready = client.getCountDownLatch("example:ready");
        ready.trySetCount(3); // before anybody counts or waits: a latch without a count is open

        std::vector<std::jthread> workers;
        for (int worker = 1; worker <= 3; ++worker) {
            workers.emplace_back([url, worker] {
                try {
                    redislock::Client own(url); // another process
                    std::this_thread::sleep_for(worker * 10ms);
                    own.getCountDownLatch("example:ready").countDown();
                } catch (const redislock::LockError& error) {
                    std::cerr << error.what() << '\n'; // the others wait in vain, but not for ever
                }
            });
        }
        if (!ready.wait(10s)) {
            std::cout << ready.getCount() << " of 3 workers are not ready\n";
            return 1;
        }
        std::cout << "all workers are ready\n";
    } catch (const redislock::LockError& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
