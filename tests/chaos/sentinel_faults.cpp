// Fail-overs of a master that Sentinels watch.
#include "chaos/failover_run.hpp"
#include "chaos/failovers.hpp"
#include "support/deployments.hpp"

#include <chrono>

namespace redislock::test::chaos {
namespace {

using namespace std::chrono_literals;

Site siteOf(SentinelDeployment& deployment)
{
    Site site;
    for (auto& server : deployment.servers) {
        site.servers.push_back(&server);
    }
    site.url = deployment.url();
    site.durability = "durability=replicas:2";
    for (const auto& sentinel : deployment.sentinels) {
        site.namers.push_back(&sentinel.server());
    }
    site.question = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"};
    site.portsNamed = [](const Value& reply) { return std::vector{reply.elements.at(1).text()}; };
    site.heal = [&deployment] {
        deployment.settle();
        (void)deployment.heal();
    };
    return site;
}

class SentinelFaults {
public:
    SentinelFaults(SentinelDeployment& deployment, FailOverRun& run) : deployment_(deployment), run_(run) {}

    std::vector<FailOverFault> all()
    {
        return {
            {"SENTINEL FAILOVER", [this] { return failOverByCommand(); }},
            {"kill -9 of the master", [this] { return run_.isReplacedAfter([&] { master().kill(); }); }},
            {"SIGSTOP of the master", [this] { return run_.stop(master(), 1000); }},
            {"SIGSTOP until a fail-over", [this] { return run_.stopUntilItIsReplaced(master()); }},
            {"SIGSTOP of a replica", [this] { return run_.stop(someReplica(), 300); }},
            {"kill -9 of a Sentinel", [this] { return killSentinel(); }},
            {"SIGSTOP of a Sentinel", [this] { return run_.stop(someSentinel(), 300); }},
        };
    }

private:
    testing::RedisServer& master() { return deployment_.servers.at(deployment_.master()); }
    testing::RedisServer& someReplica()
    {
        return deployment_.servers.at((deployment_.master() + 1 + run_.someOf(2)) % deployment_.servers.size());
    }
    testing::RedisServer& someSentinel() { return deployment_.sentinels.at(run_.someOf(3)).server(); }

    bool failOverByCommand()
    {
        const auto before = run_.promotions();
        const auto first = run_.someOf(3);
        bool isDone = false;
        for (std::size_t i = 0; i < 6 && !isDone; ++i) { // one that was stopped for two seconds does nothing for thirty
            RawRedis sentinel(deployment_.sentinels.at((first + i) % 3).server());
            isDone = !sentinel.command({"SENTINEL", "FAILOVER", "main"}).isError() && run_.awaitPromotion(before, 6s);
        }
        return isDone;
    }

    bool killSentinel()
    {
        auto& sentinel = someSentinel();
        sentinel.kill();
        run_.sleep(100, 1000);
        sentinel.restart();
        return true;
    }

    SentinelDeployment& deployment_;
    FailOverRun& run_;
};

} // namespace

void failOverSentinels(const Plan& plan, std::chrono::seconds time, const std::string& only, Injected& injected)
{
    SentinelDeployment deployment;
    FailOverRun run(plan, siteOf(deployment));
    SentinelFaults faults(deployment, run);
    run.injectAll(faults.all(), only, time, injected);
    run.finish();
}

} // namespace redislock::test::chaos
