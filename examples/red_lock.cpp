// One lock on several independent servers: it is held on a majority of them, and survives the loss of the others.
#include "shared/command_line.hpp"

#include <redislock/redislock.hpp>

#include <chrono>
#include <deque>
#include <iostream>
#include <string>
#include <vector>

using namespace std::chrono_literals;

namespace {

bool lockMajority(const std::vector<std::string>& urls)
{
    std::deque<redislock::Client> clients;
    std::vector<redislock::RedisLock> members;
    for (const std::string& url : urls) {
        members.push_back(clients.emplace_back(url).getLock("example:stock"));
    }
    const redislock::RedLock lock(members);

    redislock::GroupGuard held(lock, 2s, 10s); // waits at most 2 s, for the servers as well; the lease is 10 s
    if (!held) {
        std::cout << "others hold example:stock on a majority of the servers\n";
        return false;
    }
    std::cout << "example:stock is ours on " << held.heldMembers() << " of " << members.size()
              << " servers, for another " << held.validFor().count() << " ms\n";
    held.release();
    return true;
}

} // namespace

int main(int argc, char** argv)
{
    return example::runWithServers(argc, argv, "Takes one lock on a majority of several independent servers.",
                                   lockMajority);
}
