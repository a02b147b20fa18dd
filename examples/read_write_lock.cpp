// A price list that many read at once and one changes: nobody ever sees half a change.
#include <redislock/redislock.hpp>

#include <atomic>
#include <chrono>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

/// Stands for what all processes share: a file, a bucket, two tables without a common transaction.
struct PriceList {
    int net = 100;
    int gross = 119;

    [[nodiscard]] bool isWhole() const { return gross * 100 == net * 119; }
};

} // namespace

int main(int argc, char** argv)
{
    try {
        redislock::Client client(argc > 1 ? argv[1] : "redis://127.0.0.1:6379");
        const redislock::ReadWriteLock lock = client.getReadWriteLock("example:prices");
        PriceList prices;
        std::atomic<int> torn{0};
        {
            std::vector<std::jthread> threads;
            for (int reader = 0; reader < 3; ++reader) {
                threads.emplace_back([&] {
                    for (int i = 0; i < 20; ++i) {
                        const std::shared_lock reading(lock); // with other readers
                        torn += prices.isWhole() ? 0 : 1;
                    }
                });
            }
            threads.emplace_back([&] {
                for (int i = 0; i < 5; ++i) {
                    const std::unique_lock writing(lock); // alone; it waits for a moment without readers
                    prices.net += 100;
                    std::this_thread::sleep_for(1ms);
                    prices.gross += 119;
                }
            });
        }
        std::cout << "net " << prices.net << ", gross " << prices.gross << "; seen half changed: " << torn << '\n';
        return torn == 0 && prices.net == 600 ? 0 : 1;
    } catch (const redislock::LockError& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
