// Three printers for all: at most three jobs print at a time, in whatever processes they run. The last one opens a
// latch.
#include <redislock/redislock.hpp>

#include <chrono>
#include <iostream>
#include <sstream>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr int jobs = 6;

void print(const redislock::Client& client, int job)
{
    const auto printers = client.getPermitExpirableSemaphore("example:printers");
    if (redislock::Permit permit = printers.tryAcquire(10s, 30s)) { // free again after 30 s at the latest
        std::ostringstream line;
        line << "job " << job << " prints with permit " << permit.id() << '\n';
        std::cout << line.str();
        std::this_thread::sleep_for(20ms);
    } // given back here
    client.getCountDownLatch("example:printed").countDown();
}

} // namespace

int main(int argc, char** argv)
{
    try {
        redislock::Client client(argc > 1 ? argv[1] : "redis://127.0.0.1:6379");
        const auto printers = client.getPermitExpirableSemaphore("example:printers");
        printers.trySetPermits(3); // once: whoever comes later changes nothing
        const auto printed = client.getCountDownLatch("example:printed");
        printed.trySetCount(jobs);

        std::vector<std::jthread> threads;
        for (int job = 1; job <= jobs; ++job) {
            threads.emplace_back([&client, job] { print(client, job); });
        }
        const bool all = printed.wait(30s);
        std::cout << (all ? "all jobs were printed\n" : "some jobs still wait\n");
        return all ? 0 : 1;
    } catch (const redislock::LockError& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
