#include "integration/holder_process.hpp"

#include "redislock/redislock.hpp"
#include "support/eventually.hpp"
#include "support/raw_redis.hpp"

#include <sys/prctl.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>

namespace redislock::test {

HolderProcess::HolderProcess(const std::string& url, const std::string& name, int leaseMs, int watchdogMs,
                             const std::string& kind)
    : RoleProcess({std::string(role), url, name, std::to_string(leaseMs), std::to_string(watchdogMs), kind})
{
}

namespace {

const char* nameOf(Unlocked how)
{
    static constexpr std::array names{"released", "stillHeld", "alreadyLost", "unconfirmed", "passedOn"};
    return names.at(static_cast<std::size_t>(how));
}

void hammer(const Lock& lock, const Config& config)
{
    RawRedis raw(config.endpoint.host, config.endpoint.port);
    const auto key = lock.name() + ":count";
    for (int round = 0; round < 50; ++round) {
        const LockGuard held(lock);
        const int before = std::stoi(raw.get(key).value_or("0"));
        raw.command({"SET", key, std::to_string(before + 1)});
    }
}

} // namespace

int runHolder(const std::vector<std::string>& arguments)
{
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Config config = Config::fromUrl(arguments.at(0));
    config.watchdogTimeout = std::chrono::milliseconds(std::stoi(arguments.at(3)));
    const std::chrono::milliseconds fixed(std::stoi(arguments.at(2)));
    auto client = std::make_unique<Client>(config);
    const bool isFair = arguments.at(4) == "fair";
    const Lock lock = isFair ? Lock(client->getFairLock(arguments.at(1))) : Lock(client->getLock(arguments.at(1)));
    const auto start = bootTime();
    lock.lock(fixed == fixed.zero() ? keepRenewing : Lease(fixed));
    const auto token = lock.stopToken();
    say("held " + std::to_string(start.count()) + " " + client->id());
    for (std::string word; std::getline(std::cin, word);) {
        if (word == "state") {
            const auto count = lock.holdCount();
            const auto valid = lock.validFor();
            say("count=" + std::to_string(count) + " valid=" + std::to_string(valid.count()) +
                " stopped=" + std::to_string(int(lock.stopToken().stop_requested())) +
                " token=" + std::to_string(int(token.stop_requested())));
        } else if (word == "unlock") {
            say(nameOf(lock.unlock()));
        } else if (word == "hammer") {
            hammer(lock, config);
            say("done");
        } else if (word == "exit") {
            static const Client* const kept = client.release(); // never destroyed
            std::exit(kept != nullptr ? 0 : 1);                 // NOLINT: what is tested
        } else if (word == "exit-static") {
            static const Client last(std::move(*client));
            std::exit(0); // NOLINT: what is tested
        } else if (word == "return") {
            const LockGuard guard(lock);
            return 0;
        }
    }
    return 0;
}

} // namespace redislock::test
