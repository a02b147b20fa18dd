// Bookings to many accounts: only bookings that share a segment wait for each other. The sum over all accounts waits
// for all of them.
#include "shared/command_line.hpp"

#include <redislock/redislock.hpp>

#include <array>
#include <future>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

namespace {

bool bookAndSum(const std::string& url)
{
    const redislock::Client client(url);
    client.connect(); // reports a wrong address here, not after the first wait
    // every program has to use the same number of segments
    const redislock::SegmentedLock lock = client.getSegmentedLock("example:accounts", 16);
    std::array<int, 100> balances{};
    {
        std::vector<std::future<void>> threads;
        for (int thread = 0; thread < 4; ++thread) {
            threads.push_back(std::async(std::launch::async, [&] {
                for (std::size_t account = 0; account < balances.size(); ++account) {
                    const redislock::LockGuard held(lock.lockFor("account " + std::to_string(account)));
                    ++balances.at(account);
                }
            }));
        }
        for (auto& thread : threads) {
            thread.get(); // rethrows an exception of the thread
        }
    }
    const redislock::GroupGuard everything(lock.all());
    const int sum = std::accumulate(balances.begin(), balances.end(), 0);
    std::cout << sum << " booked to " << balances.size() << " accounts under " << lock.segments() << " locks\n";
    return sum == 400;
}

} // namespace

int main(int argc, char** argv)
{
    return example::run(
        argc, argv,
        "Books to 100 accounts from four threads under 16 locks, then adds up all accounts under all of the locks.",
        bookAndSum);
}
