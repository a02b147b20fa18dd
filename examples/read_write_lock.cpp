// A price list that many threads read at once and one thread changes: no reader ever sees half a change.
#include "shared/command_line.hpp"

#include <redislock/redislock.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

/// Stands for data that all processes share: a file, a bucket, two tables without a common transaction.
struct PriceList {
    int net = 100;
    int gross = 119;

    [[nodiscard]] bool isWhole() const { return gross * 100 == net * 119; }
};

bool changePrices(const std::string& url)
{
    const redislock::Client client(url);
    client.connect(); // reports a wrong address here, not after the first wait
    const redislock::ReadWriteLock lock = client.getReadWriteLock("example:prices");
    PriceList prices;
    std::atomic<int> torn{0};
    {
        std::vector<std::future<void>> threads;
        for (int reader = 0; reader < 3; ++reader) {
            threads.push_back(std::async(std::launch::async, [&] {
                for (int i = 0; i < 20; ++i) {
                    const std::shared_lock reading(lock); // with other readers
                    torn += prices.isWhole() ? 0 : 1;
                }
            }));
        }
        threads.push_back(std::async(std::launch::async, [&] {
            for (int i = 0; i < 5; ++i) {
                const std::unique_lock writing(lock); // alone; it waits for a moment without readers
                prices.net += 100;
                std::this_thread::sleep_for(1ms);
                prices.gross += 119;
            }
        }));
        for (auto& thread : threads) {
            thread.get(); // rethrows an exception of the thread
        }
    }
    std::cout << "net " << prices.net << ", gross " << prices.gross << "; half-done changes seen: " << torn << '\n';
    return torn == 0 && prices.net == 600;
}

} // namespace

int main(int argc, char** argv)
{
    return example::run(argc, argv,
                        "Reads a price list in three threads while a fourth changes it, and counts how often a change "
                        "was seen half done.",
                        changePrices);
}
