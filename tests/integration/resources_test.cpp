// The resources of a client: threads, connections, and the renewal of a thousand locks.
#include "behaviour/blocking_drivers.hpp"
#include "behaviour/lock_test.hpp"
#include "behaviour/worker.hpp"
#include "redislock/redislock.hpp"
#include "support/own_resources.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
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
    static std::ptrdiff_t sockets()
    {
        return std::ranges::count_if(std::filesystem::directory_iterator("/proc/self/fd"), [](const auto& entry) {
            std::error_code gone;
            return std::filesystem::read_symlink(entry.path(), gone).string().starts_with("socket:");
        });
    }

    /// Threads, or open files, of this process.
    static std::vector<int> ids(const char* folder)
    {
        std::vector<int> all;
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            all.push_back(std::stoi(entry.path().filename().string()));
        }
        std::ranges::sort(all);
        return all;
    }
    /// The signals that a thread blocks; 0: none, or the thread is gone.
    static std::uint64_t blocked(int thread)
    {
        std::ifstream in("/proc/self/task/" + std::to_string(thread) + "/status");
        for (std::string line; std::getline(in, line);) {
            if (line.starts_with("SigBlk:")) {
                return std::stoull(line.substr(7), nullptr, 16);
            }
        }
        return 0;
    }
    /// The signals that cannot be blocked: SIGKILL, SIGSTOP, and two of the C library's own.
    static constexpr std::uint64_t kept = 1ULL << 8U | 1ULL << 18U | 1ULL << 31U | 1ULL << 32U;

    int threadsWithout = 0; ///< signals
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
    ASSERT_TRUE(eventually([own = sockets()] { return sockets() == own + 1; })) << "to hear of the server's end";
    const auto threadsBefore = runningThreads();
    const auto socketsBefore = sockets();
    {
        Config config = observed();
        config.clientName = "frugal";
        const Client client(config);
        const auto lock = client.getLock(contended);
        EXPECT_EQ(runningThreads(), threadsBefore);
        std::vector<std::future<Result<bool>>> waiters;
        for (auto& worker : workers) {
            waiters.push_back(
                worker->start([&] { return D::tryLock(lock, 3s); })); // longer than the first renewals take
        }
        std::vector<LockGuard> guards;
        for (int i = 0; i < 100; ++i) {
            guards.emplace_back(client.getLock(uniqueName()));
        }
        ASSERT_TRUE(observer()->await("renewed", {}, 100));
        ASSERT_TRUE(eventually([&] { return listeners(contended) == 1; }));
        EXPECT_EQ(runningThreads(), threadsBefore + 1);
        EXPECT_EQ(sockets(), socketsBefore + 3);
        for (auto& waiter : waiters) {
            EXPECT_EQ(waiter.get(), false);
        }
        EXPECT_EQ(runningThreads(), threadsBefore + 1);
        EXPECT_EQ(sockets(), socketsBefore + 3);
    }
    EXPECT_TRUE(eventually([&] { return runningThreads() == threadsBefore; }));
    EXPECT_TRUE(eventually([&] { return sockets() == socketsBefore; }));
    EXPECT_EQ(D::unlock(other.getLock(contended)), Unlocked::released);
}

TEST_F(Resources, NothingThatIsOpenedIsInheritedAndTheThreadTakesNoSignal)
{
    const Client other(config());
    raw.command({"PING"});
    const auto taken = other.getLock(uniqueName());
    const LockGuard held(taken, Lease(60s));
    const auto urls = {server().url(), server().unixUrl(), "redis://localhost:" + std::to_string(server().port())};
    for (const auto& url : urls) {
        const auto threadsBefore = ids("/proc/self/task");
        const auto openBefore = ids("/proc/self/fd");
        Config own = Config::fromUrl(url);
        own.watchdogTimeout = 300ms;
        own.observer = std::make_shared<RecordingObserver>();
        const Client client(own);
        const LockGuard renewed(client.getLock(uniqueName()));
        Worker waiting;
        auto waiter = waiting.start([lock = client.getLock(taken.name())] { return lock.tryLock(500ms); });
        ASSERT_TRUE(eventually([&] { return listeners(taken.name()) == 1; })) << "all connections are there";
        int opened = 0;
        for (const int fd : ids("/proc/self/fd")) {
            if (!std::ranges::binary_search(openBefore, fd) && ::fcntl(fd, F_GETFD) >= 0) {
                ++opened;
                EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << fd;
            }
        }
        EXPECT_GE(opened, 3) << url;
        sigset_t mine;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &mine);
        EXPECT_EQ(::sigismember(&mine, SIGTERM), 0) << "the caller's are as they were";
        for (const int thread : ids("/proc/self/task")) {
            if (!std::ranges::binary_search(threadsBefore, thread) && blocked(thread) != 0) {
                EXPECT_EQ(blocked(thread) | kept, ~std::uint64_t{0}) << "all that can be blocked";
                ++threadsWithout;
            }
        }
        EXPECT_FALSE(waiter.get());
    }
    EXPECT_GE(threadsWithout, 3);
}

/// While this exists, the system makes no thread for this process: no memory is as large as the stack that it would get.
class NoThreads {
public:
    NoThreads()
    {
        ::pthread_getattr_default_np(&before_);
        pthread_attr_t huge;
        ::pthread_attr_init(&huge);
        ::pthread_attr_setstacksize(&huge, std::size_t{1} << 46U);
        ::pthread_setattr_default_np(&huge);
        ::pthread_attr_destroy(&huge);
    }
    NoThreads(const NoThreads&) = delete;
    NoThreads& operator=(const NoThreads&) = delete;
    ~NoThreads()
    {
        ::pthread_setattr_default_np(&before_);
        ::pthread_attr_destroy(&before_);
    }

private:
    pthread_attr_t before_{};
};

/// While this exists, the system gives this process no descriptor.
class NoDescriptors {
public:
    NoDescriptors()
    {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const rlimit none{0, before_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &none);
    }
    NoDescriptors(const NoDescriptors&) = delete;
    NoDescriptors& operator=(const NoDescriptors&) = delete;
    ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
    rlimit before_{};
};

template <class Function>
std::error_code codeThrownBy(Function function)
{
    try {
        function();
    } catch (const LockError& e) {
        return e.code();
    }
    return {};
}

TEST_F(Resources, ThatNoThreadCanBeMadeIsACodeAndTheNextCallWorks)
{
    const Client client(config());
    const auto lock = client.getLock(uniqueName());
    {
        const NoThreads none;
        std::error_code ec;
        EXPECT_FALSE(lock.tryLock(1s, 10s, ec));
        EXPECT_EQ(ec, Cause::noThread);
        EXPECT_EQ(ec, Errc::systemRefused);
        client.connect(ec);
        EXPECT_EQ(ec, Cause::noThread);
        EXPECT_FALSE(lock.isLocked(ec));
        EXPECT_EQ(ec, Cause::noThread);
        EXPECT_EQ(lock.explain(ec), std::nullopt);
        EXPECT_EQ(ec, Cause::noThread);
        EXPECT_FALSE(client.getSemaphore(uniqueName()).tryAcquire(1, 1s, ec));
        EXPECT_EQ(ec, Cause::noThread);
        EXPECT_EQ(codeThrownBy([&] { lock.lock(); }), Cause::noThread);
        EXPECT_EQ(codeThrownBy([&] { const LockGuard held(lock); }), Cause::noThread);
        EXPECT_EQ(codeThrownBy([&] { lock.asyncLock([](boost::system::error_code, LockGuard) {}); }), Cause::noThread)
            << "nobody could call the handler";
        boost::asio::io_context own;
        boost::system::error_code told;
        lock.asyncLock(boost::asio::bind_executor(own, [&](boost::system::error_code e, LockGuard) { told = e; }));
        own.run();
        EXPECT_EQ(std::error_code(told), Cause::noThread);
        EXPECT_FALSE(MultiLock({lock}).tryLock(1s, 10s, ec));
        EXPECT_EQ(ec, Errc::systemRefused);
    }
    const LockGuard held(lock);
    EXPECT_TRUE(held);
}

TEST_F(Resources, ThatThereIsNoDescriptorIsALockErrorAndTheNextClientWorks)
{
    const Config own = config();
    {
        const NoDescriptors none;
        EXPECT_EQ(codeThrownBy([&] { const Client client(own); }), Cause::noDescriptor);
        EXPECT_EQ(codeThrownBy([&] { const LockMonitor monitor(own); }), Cause::noDescriptor);
    }
    const Client client(own);
    const auto lock = client.getLock(uniqueName());
    {
        const NoDescriptors none;
        std::error_code ec;
        EXPECT_FALSE(lock.tryLock(200ms, 10s, ec));
        EXPECT_EQ(ec, Cause::connectFailed) << ec.message();
    }
    const LockGuard held(lock);
    EXPECT_TRUE(held);
}

TEST_F(Resources, AreNeverStandardDescriptors)
{
    const auto taken = uniqueName();
    const Client other(config());
    const LockGuard foreign(other.getLock(taken), Lease(60s));
    EXPECT_EQ(listeners(taken), 0) << "the test's own connection, before descriptors are closed";
    const auto urls = {server().url(), server().unixUrl()};
    for (const auto& url : urls) {
        std::array<int, 3> copies{};
        for (int fd = 0; fd < 3; ++fd) {
            copies.at(static_cast<std::size_t>(fd)) = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
            ::close(fd);
        }
        bool worked = false;
        std::array<bool, 3> used{};
        {
            Config own = Config::fromUrl(url);
            own.watchdogTimeout = 300ms;
            own.observer = std::make_shared<RecordingObserver>();
            const Client client(own);
            const LockGuard renewed(client.getLock(uniqueName()));
            LockMonitor monitor(own);
            worked = renewed && !monitor.list().empty();
            Worker waiting;
            auto waiter = waiting.start([lock = client.getLock(taken)] { return lock.tryLock(500ms); });
            worked = worked && eventually([&] { return listeners(taken) == 1; }) && !waiter.get();
            for (int fd = 0; fd < 3; ++fd) {
                used.at(static_cast<std::size_t>(fd)) = ::fcntl(fd, F_GETFD) >= 0;
            }
        }
        for (int fd = 0; fd < 3; ++fd) {
            ::dup2(copies.at(static_cast<std::size_t>(fd)), fd);
            ::close(copies.at(static_cast<std::size_t>(fd)));
        }
        EXPECT_TRUE(worked) << url;
        EXPECT_EQ(used, (std::array<bool, 3>{})) << url;
    }
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
