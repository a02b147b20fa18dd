// Bookings to many accounts, of which only those that share a segment wait for each other; and the sum of all, for
// which everybody waits.
#include <redislock/redislock.hpp>

#include <array>
#include <iostream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

int main(int argc, char** argv)
{
    try {
        redislock::Client client(argc > 1 ? argv[1] : "redis://127.0.0.1:6379");
        // the same number in all programs
        const redislock::SegmentedLock lock = client.getSegmentedLock("example:accounts", 16);
        std::array<int, 100> balances{};
        {
            std::vector<std::jthread> threads;
            for (int thread = 0; thread < 4; ++thread) {
                threads.emplace_back([&] {
                    for (std::size_t account = 0; account < balances.size(); ++account) {
                        const redislock::LockGuard held(lock.lockFor("account " + std::to_string(account)));
                        ++balances.at(account);
                    }
                });
            }
        }
        const redislock::GroupGuard everything(lock.all());
        const int sum = std::accumulate(balances.begin(), balances.end(), 0);
        std::cout << sum << " booked to " << balances.size() << " accounts under " << lock.segments() << " locks\n";
        return sum == 400 ? 0 : 1;
    } catch (const redislock::LockError& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
