// Transfers between accounts need two locks at once, and take them in opposite orders: nobody waits for ever.
#include <redislock/redislock.hpp>

#include <array>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
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

} // namespace

int main(int argc, char** argv)
{
    try {
        redislock::Client client(argc > 1 ? argv[1] : "redis://127.0.0.1:6379");
        Accounts accounts{100, 100, 100};
        {
            std::vector<std::jthread> threads;
            for (std::size_t i = 0; i < accounts.size(); ++i) {
                threads.emplace_back([&, i] {
                    for (int n = 0; n < 5; ++n) {
                        transfer(client, accounts, i, (i + 1) % accounts.size());
                        transfer(client, accounts, (i + 2) % accounts.size(), i);
                    }
                });
            }
        }
        for (const int balance : accounts) {
            std::cout << balance << ' ';
        }
        std::cout << "after 30 transfers in a ring\n";
        return accounts == Accounts{100, 100, 100} ? 0 : 1;
    } catch (const redislock::LockError& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
