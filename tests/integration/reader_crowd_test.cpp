// Hundreds of readers in several processes, behind one writer.
#include "behaviour/lock_test.hpp"
#include "integration/crowd_process.hpp"
#include "support/fault_proxy.hpp"

#include <redislock/redislock.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace redislock::test {
namespace {

class ReaderCrowd : public LockTest {
protected:
    /// Starts @p count processes with @p readers readers each, and waits until all readers have asked, listen, and
    /// sleep.
    void start(std::size_t count, std::size_t readers)
    {
        const auto answered =
            proxy.add({.command = "EVALSHA", .direction = Direction::reply, .nth = 0}, Action::pass());
        const auto confirmed =
            proxy.add({.command = "SUBSCRIBE", .direction = Direction::reply, .nth = 0}, Action::pass());
        const auto url = proxy.url() + "?command_timeout=60000&unreachable_after=60000";
        for (std::size_t i = 0; i < count; ++i) {
            processes.push_back(std::make_unique<CrowdProcess>(url, name, CrowdProcess::Wants::readLock, 1min));
            EXPECT_EQ(processes.back()->line().size(), 36U);
            processes.back()->join(readers);
        }
        const auto isQuiet = [&] {
            const auto asked = proxy.requests("EVALSHA");
            return asked >= count * readers && proxy.hits(confirmed) == count &&
                   std::ranges::all_of(processes, [](const auto& process) { return process->sleeps(); }) &&
                   proxy.requests("EVALSHA") == asked && proxy.hits(answered) == asked;
        };
        ASSERT_TRUE(eventually(isQuiet, patience));
        proxy.clear();
        proxy.clearRequestLog();
    }
    std::size_t reading()
    {
        std::size_t all = 0;
        for (const auto& process : processes) {
            all += std::stoul(process->ask("reading"));
        }
        return all;
    }

    const std::string name = uniqueName();
    FaultProxy proxy{server()};
    std::vector<std::unique_ptr<CrowdProcess>> processes;
    const Client client{config()};
    const ReadWriteLock lock = client.getReadWriteLock(name);
};

TEST_F(ReaderCrowd, TwoHundredOfEightProcessesAskInOneRoundTripWhenTheWriterLeaves)
{
    ASSERT_TRUE(lock.readLock().tryLock());
    lock.readLock().unlock(); // from now on the server knows the scripts
    lock.writeLock().lock(10min);
    start(8, 25);
    EXPECT_EQ(reading(), 0U);
    const auto withheld =
        proxy.add({.command = "EVALSHA", .direction = Direction::reply, .nth = 0}, Action::stallDirection());
    EXPECT_EQ(lock.writeLock().unlock(), Unlocked::released);
    EXPECT_TRUE(proxy.awaitRequests("EVALSHA", 200, 3s))
        << proxy.requests("EVALSHA") << " asked before anybody was answered";
    EXPECT_EQ(reading(), 0U);
    EXPECT_TRUE(proxy.awaitHits(withheld, 8));
    proxy.clear();
    proxy.resume();
    EXPECT_TRUE(eventually([&] { return reading() == 200U; }, patience));
    EXPECT_EQ(proxy.requests("EVALSHA"), 200U) << "each asked once";
    for (const auto& process : processes) {
        process->tell("leave");
    }
    EXPECT_TRUE(eventually([&] { return !raw.exists(name); }, patience));
}

} // namespace
} // namespace redislock::test
