// First come, first served: five customers queue while the counter is busy, and are served in the order in which they
// came, whichever process they wait in.
#include "shared/command_line.hpp"

#include <redislock/redislock.hpp>

#include <boost/asio/use_future.hpp>

#include <chrono>
#include <future>
#include <iostream>
#include <string>
#include <vector>

using namespace std::chrono_literals;

namespace {

bool serveInOrder(const std::string& url)
{
    std::vector<int> served; // written by the holder of the lock; outlives the client, whose thread fills it
    const redislock::Client client(url);
    client.connect(); // reports a wrong address here, not after the first wait
    const redislock::FairLock counter = client.getFairLock("example:counter");

    std::vector<std::future<bool>> customers;
    redislock::LockGuard busy(counter, redislock::Lease(30s));
    for (int customer = 1; customer <= 5; ++customer) {
        // each waits at most 10 s for its turn; its first request decides its place
        customers.push_back(redislock::asyncExecuteWithLock(
            counter, 10s, 30s, [&served, customer] { served.push_back(customer); }, boost::asio::use_future));
    }
    busy.release();
    for (auto& customer : customers) {
        if (!customer.get()) {
            std::cout << "one customer gave up\n";
        }
    }
    std::cout << "served:";
    for (const int customer : served) {
        std::cout << ' ' << customer;
    }
    std::cout << '\n';
    return served == std::vector{1, 2, 3, 4, 5};
}

} // namespace

int main(int argc, char** argv)
{
    return example::run(argc, argv,
                        "Lets five customers queue at a busy counter, and serves them in the order in which they came.",
                        serveInOrder);
}
