/// @file
/// The parts of a chaos run whose faults are fail-overs: servers, worker processes, and the record of everything.
#pragma once

#include "chaos/world.hpp"
#include "support/raw_redis.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace redislock::test::chaos {

struct FailOverFault {
    const char* name;
    std::function<bool()> inject; ///< @return whether it took effect
};

/// Servers that replace each other.
struct Site {
    std::vector<testing::RedisServer*> servers; ///< number i stands in for number i % masters
    std::size_t masters = 1;
    std::string url;
    std::string durability; ///< of the locks that have one, as a query of the URL

    // which servers are masters: by whom it is said, and how; ports
    std::vector<const testing::RedisServer*> namers;
    RawRedis::Arguments question;
    std::function<std::vector<std::string>(const Value&)> portsNamed; ///< of one office the first counts

    std::function<void()> heal; ///< waits until all servers are there again, and agree
};

/// Runs worker processes on a site, and records what they and the servers do.
class FailOverRun {
public:
    FailOverRun(const Plan& plan, Site site);
    ~FailOverRun();

    /// How many servers were named masters that were not before.
    [[nodiscard]] std::size_t promotions() const noexcept;
    /// Whether there has been a fail-over since then, or comes soon.
    [[nodiscard]] bool awaitPromotion(std::size_t before,
                                      std::chrono::milliseconds patience = std::chrono::seconds(30)) const;
    /// Injects each fault whose name contains @p only once, in random order, and again until the time is over; requires
    /// all processes to work after each.
    void injectAll(std::vector<FailOverFault> faults, const std::string& only, std::chrono::seconds time,
                   Injected& injected);
    /// Ends the processes.
    void finish();

    // parts of faults
    void sleep(int leastMs, int mostMs);
    /// Stops the server for at least that long. @return true
    bool stop(testing::RedisServer& server, int leastMs);
    /// Does something to a master. @return whether another server takes its place
    template <class Fault>
    bool isReplacedAfter(Fault fault)
    {
        const auto before = promotions();
        fault();
        return awaitPromotion(before);
    }
    /// Stops a master, which is replaced meanwhile and goes on as one until somebody tells it. @return whether it is
    bool stopUntilItIsReplaced(testing::RedisServer& master);
    [[nodiscard]] std::size_t someOf(std::size_t count) { return random_() % count; }
    history::Recorder& recorder() noexcept { return *recorder_; }

private:
    class Witness;
    class Watcher;

    void startWorkers();
    void inject(const FailOverFault& fault, Injected& injected);
    void requireRecovery(const std::string& after);

    const Plan plan_;
    const Site site_;
    std::mt19937_64 random_;
    Progress progress_;
    std::shared_ptr<history::Recorder> recorder_;
    Heartbeat heartbeat_;
    std::vector<std::unique_ptr<Witness>> witnesses_;
    std::unique_ptr<Watcher> watcher_;
    std::vector<testing::detail::ChildProcess> workers_;
    std::optional<testing::detail::ChildProcess> redisson_;
};

} // namespace redislock::test::chaos
