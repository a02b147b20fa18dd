// Transfers between accounts need two locks at once, and name them in opposite orders: no transfer waits for ever.
#include "shared/command_line.hpp"

#include <redislock/redislock.hpp>

#include <array>
#include <future>
#include <iostream>
#include <mutex>
#include <string>
#include <vector>

namespace {

using Accounts = std::array<int, 3>;

void transfer(const redislock::Client& client, Accounts& accounts, std::size_t from, std::size_t to)
{
    const auto lockOf = [&](std::size_t account) {
        return client.getLock("example:account:" + std::to_string(account));
    };
    const redislock::MultiLock both({lockOf(from), lockOf(to)});
    const std::scoped_lock held(both); // both or none
    accounts.at(from) -= 10;
    accounts.at(to) += 10;
}

bool transferInARing(const std::string& url)
{
    const redislock::Client client(url);
    client.connect(); // reports a wrong address here, not after the first wait
    Accounts accounts{100, 100, 100};
    {
        std::vector<std::future<void>> threads;
        for (std::size_t i = 0; i < accounts.size(); ++i) {
            threads.push_back(std::async(std::launch::async, [&, i] {
                for (int n = 0; n < 5; ++n) {
                    transfer(client, accounts, i, (i + 1) % accounts.size());
                    transfer(client, accounts, (i + 2) % accounts.size(), i);
                }
            }));
        }
        for (auto& thread : threads) {
            thread.get(); // rethrows an exception of the thread
        }
    }
    std::cout << "balances after 30 transfers in a ring:";
    for (const int balance : accounts) {
        std::cout << ' ' << balance;
    }
    std::cout << '\n';
    return accounts == Accounts{100, 100, 100};
}

} // namespace

int main(int argc, char** argv)
{
    return example::run(argc, argv, "Transfers money around a ring of three accounts, both accounts locked each time.",
                        transferInARing);
}
