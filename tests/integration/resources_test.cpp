// What a client costs: threads, connections, and the renewal of a thousand locks.
#include "behaviour/lock_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace redislock::test {
namespace {

using D = BlockingCodes;

class Resources : public LockTest {
protected:
    static std::ptrdiff_t threads() { return entries("/proc/self/task", {}); }
    static std::ptrdiff_t sockets() { return entries("/proc/self/fd", "socket:"); }

private:
    /// How many entries a folder has that are, or lead to, something of this name.
    static std::ptrdiff_t entries(const char* folder, const std::string& leadingTo)
    {
        return std::ranges::count_if(std::filesystem::directory_iterator(folder), [&](const auto& entry) {
            std::error_code gone;
            return leadingTo.empty() ||
                   std::filesystem::read_symlink(entry.path(), gone).string().starts_with(leadingTo);
        });
    }
};

TEST_F(Resources, OneThreadAndThreeConnectionsServeAnyNumberOfLocksAndWaiters)
{
    raw.command({"PING"});
    std::vector<std::unique_ptr<Worker>> workers(8);
    for (auto& worker : workers) {
        worker = std::make_unique<Worker>();
    }
    const Client other(config());
    const auto contended = uniqueName();
    EXPECT_EQ(D::lock(other.getLock(contended), 60s), true);
    const auto threadsBefore = threads();
    const auto socketsBefore = sockets();
    {
        Config config = observed();
        config.clientName = "frugal";
        const Client client(config);
        const auto lock = client.getLock(contended);
        EXPECT_EQ(threads(), threadsBefore);
        std::vector<std::future<Result<bool>>> waiters;
        for (auto& worker : workers) {
            waiters.push_back(worker->start([&] { return D::tryLock(lock, 600ms); }));
        }
        std::vector<LockGuard> guards;
        for (int i = 0; i < 100; ++i) {
            guards.emplace_back(client.getLock(uniqueName()));
        }
        ASSERT_TRUE(observer()->await("renewed", {}, 100));
        ASSERT_TRUE(eventually([&] { return listeners(contended) == 1; }));
        EXPECT_EQ(threads(), threadsBefore + 1);
        EXPECT_EQ(sockets(), socketsBefore + 3);
        for (auto& waiter : waiters) {
            EXPECT_EQ(waiter.get(), false);
        }
        EXPECT_EQ(threads(), threadsBefore + 1);
        EXPECT_EQ(sockets(), socketsBefore + 3);
    }
    EXPECT_TRUE(eventually([&] { return threads() == threadsBefore; }));
    EXPECT_TRUE(eventually([&] { return sockets() == socketsBefore; }));
    EXPECT_EQ(D::unlock(other.getLock(contended)), Unlocked::released);
}

TEST_F(Resources, AThousandLocksOfOneClientAreAllRenewed)
{
    constexpr std::size_t count = 1000;
    Config config = observed();
    config.watchdogTimeout = 1500ms;
    const Client client(config);
    std::vector<std::string> names;
    std::vector<LockGuard> guards;
    for (std::size_t i = 0; i < count; ++i) {
        names.push_back(uniqueName());
        guards.emplace_back(client.getLock(names.back()));
    }
    const auto allRenewed = [&](int times) {
        std::map<std::string, int> renewals;
        for (const auto& told : observer()->all()) {
            renewals[told.name] += told.what == "renewed" ? 1 : 0;
        }
        return std::ranges::all_of(names, [&](const auto& name) { return renewals[name] >= times; });
    };
    ASSERT_TRUE(eventually([&] { return allRenewed(4); }, 9s)) << "longer than the first lease";
    EXPECT_EQ(observer()->count("lost"), 0U);
    EXPECT_TRUE(std::ranges::all_of(guards, [](const auto& held) { return static_cast<bool>(held); }));
    EXPECT_TRUE(std::ranges::all_of(names, [&](const auto& name) { return raw.exists(name); }));
    guards.clear();
    ASSERT_TRUE(observer()->await("released", {}, count));
    EXPECT_TRUE(std::ranges::none_of(names, [&](const auto& name) { return raw.exists(name); }));
}

} // namespace
} // namespace redislock::test
