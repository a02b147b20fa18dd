// A start that waits until three workers are ready, wherever they run.
#include "shared/command_line.hpp"

#include <redislock/redislock.hpp>

#include <chrono>
#include <future>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

bool startTogether(const std::string& url)
{
    const redislock::Client client(url);
    client.connect(); // reports a wrong address here, not after the first wait
    const redislock::CountDownLatch ready = client.getCountDownLatch("example:ready");
    ready.trySetCount(3); // before anybody counts or waits: a latch without a count is open

    std::vector<std::future<void>> workers;
    for (int worker = 1; worker <= 3; ++worker) {
        workers.push_back(std::async(std::launch::async, [&url, worker] {
            const redislock::Client own(url); // stands for another process
            std::this_thread::sleep_for(worker * 10ms);
            own.getCountDownLatch("example:ready").countDown(); // the last one deletes the key
        }));
    }
    const bool all = ready.wait(10s);
    if (all) {
        std::cout << "all three workers are ready\n";
    } else {
        std::cout << ready.getCount() << " of 3 workers are not ready\n";
        ready.forceDelete();
    }
    for (auto& worker : workers) {
        worker.get(); // rethrows an exception of the worker
    }
    return all;
}

} // namespace

int main(int argc, char** argv)
{
    return example::run(argc, argv, "Starts three workers, and waits at a latch until all of them are ready.",
                        startTogether);
}
