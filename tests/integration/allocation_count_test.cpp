// The blocking, uncontended path allocates nothing after the first use of a name.
//
// This program has its own malloc, which the library, hiredis, and operator new of the standard library use.
#include "behaviour/lock_test.hpp"
#include "redislock/lock_guard.hpp"
#include "redislock/redis_lock.hpp"
#include "unit/thread_link_rig.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

/// The allocations of this thread: other threads may allocate, and do.
constinit thread_local std::size_t allocations = 0;

} // namespace

// The C library's own functions under their second names; a look-up with dlsym() would itself allocate.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size)
{
    ++allocations;
    return __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size)
{
    ++allocations;
    return __libc_calloc(count, size);
}

void* realloc(void* memory, std::size_t size)
{
    ++allocations;
    return __libc_realloc(memory, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size)
{
    ++allocations;
    return __libc_memalign(alignment, size);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t size)
{
    ++allocations;
    *memory = __libc_memalign(alignment, size);
    return *memory == nullptr ? ENOMEM : 0;
}
} // extern "C"

namespace redislock::test {
namespace {

/// How many allocations this thread makes in a thousand calls, after a hundred calls that may allocate.
std::size_t countIn(const std::function<void()>& cycle)
{
    constexpr int warmUps = 100;
    constexpr int cycles = 1000;
    for (int i = 0; i < warmUps; ++i) {
        cycle();
    }
    const auto before = allocations;
    for (int i = 0; i < cycles; ++i) {
        cycle();
    }
    return allocations - before;
}

class AllocationCount : public LockTest {
protected:
    /// The default settings.
    const Client client{server().url()};
    const RedisLock lock = client.getLock(uniqueName());

    /// The memory of a hold is used again. While the release of a hold is under way the next hold needs new memory, and
    /// a third one does if the thread that read the answer does not run just then: this memory is allocated here.
    void SetUp() override
    {
        LockTest::SetUp();
        std::array<std::optional<LockGuard>, 4> guards;
        for (auto& guard : guards) {
            guard.emplace(client.getLock(uniqueName()));
        }
        // the name's account of gaps begins after its first hold of this length
        const LockGuard held(lock);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }

    static void expectReleased(Unlocked how)
    {
        if (how != Unlocked::released) {
            ADD_FAILURE() << "not released";
        }
    }
};

TEST_F(AllocationCount, SeesWhatTheStandardLibraryAndHiredisAllocate)
{
    const auto before = allocations;
    const std::vector<int> four(4);
    EXPECT_EQ(allocations, before + 1) << "operator new of the standard library";
    ::operator delete(::operator new(64, std::align_val_t(64)), std::align_val_t(64));
    EXPECT_EQ(allocations, before + 2) << "aligned operator new of the standard library";
    raw.command({"PING"});
    EXPECT_GT(allocations, before + 2) << "the reader of hiredis, which is a library of its own";
}

class LeaderAllocationCount : public detail::ThreadLinkTest {};

TEST_F(LeaderAllocationCount, LeadsWithoutAllocatingWhileTheSweepTellsWhatItRead)
{
    auto redis = connectFor(a);
    const auto ask = [&] {
        connection.enqueue(a);
        connection.flush();
        (void)redis.drain();
        redis.reply(":1\r\n");
        (void)connection.await(*a, detail::never);
    };
    redis.reply(":1\r\n");
    (void)connection.await(*a, detail::never);
    (void)countIn(ask); // buffers grow

    std::size_t counted = 1;
    x->atEnd = [&] {
        const auto before = allocations;
        ask();
        counted = allocations - before;
    };
    connection.enqueue(x);
    connection.flush();
    redis.reply(":1\r\n");
    connection.sweep();
    EXPECT_EQ(counted, 0U);
}

TEST_F(AllocationCount, LockAndUnlockAllocateNothing)
{
    const auto cycle = [this] {
        lock.lock();
        expectReleased(lock.unlock());
    };
    EXPECT_EQ(countIn(cycle), 0U);
}

TEST_F(AllocationCount, LockAndUnlockWithAFixedLeaseAllocateNothing)
{
    const auto cycle = [this] {
        lock.lock(10s);
        expectReleased(lock.unlock());
    };
    EXPECT_EQ(countIn(cycle), 0U);
}

TEST_F(AllocationCount, LockAndUnlockWithErrorCodesAllocateNothing)
{
    const auto cycle = [this] {
        std::error_code ec;
        lock.lock(ec);
        expectReleased(lock.unlock(ec));
    };
    EXPECT_EQ(countIn(cycle), 0U);
}

TEST_F(AllocationCount, TryLockAllocatesNothing)
{
    const auto cycle = [this] {
        if (!lock.tryLock()) {
            ADD_FAILURE() << "nobody else wants it";
        }
        expectReleased(lock.unlock());
    };
    EXPECT_EQ(countIn(cycle), 0U);
}

TEST_F(AllocationCount, TryLockWithAWaitAllocatesNothing)
{
    const auto cycle = [this] {
        if (!lock.tryLock(100ms, 10s)) {
            ADD_FAILURE() << "nobody else wants it";
        }
        expectReleased(lock.unlock());
    };
    EXPECT_EQ(countIn(cycle), 0U);
}

TEST_F(AllocationCount, AScopedLockAllocatesNothing)
{
    EXPECT_EQ(countIn([this] { const std::scoped_lock held(lock); }), 0U);
}

TEST_F(AllocationCount, AGuardAllocatesNothing)
{
    EXPECT_EQ(countIn([this] { const LockGuard held(lock); }), 0U);
}

TEST_F(AllocationCount, AGuardThatIsReleasedAllocatesNothing)
{
    const auto cycle = [this] {
        LockGuard held(lock);
        expectReleased(held.release());
    };
    EXPECT_EQ(countIn(cycle), 0U);
}

TEST_F(AllocationCount, NestedLevelsAllocateNothing)
{
    constexpr int depth = 5;
    const auto cycle = [this] {
        for (int level = 0; level < depth; ++level) {
            lock.lock();
        }
        for (int level = 1; level < depth; ++level) {
            (void)lock.unlock();
        }
        expectReleased(lock.unlock());
    };
    EXPECT_EQ(countIn(cycle), 0U);
}

TEST_F(AllocationCount, WhatAHoldSaysOfItselfAllocatesNothing)
{
    const LockGuard held(lock);
    const auto cycle = [this, &held] {
        if (!held || held.validFor() == 0ms || lock.validFor() == 0ms || lock.holdCount() != 1) {
            ADD_FAILURE() << "it is held";
        }
    };
    EXPECT_EQ(countIn(cycle), 0U);
}

/// A thread that the child does not have may hold the locks of the program's allocator.
TEST_F(AllocationCount, WhatAForkedChildAsksOfALockAllocatesNothing)
{
    const LockGuard guard(lock);
    const pid_t child = ::fork();
    if (child == 0) {
        const auto before = allocations;
        std::error_code codes[7];
        std::error_code* ec = codes;
        lock.lock(*ec++);
        (void)lock.tryLock(*ec++);
        (void)lock.tryLock(10s, 10s, *ec++);
        (void)lock.isLocked(*ec++);
        (void)lock.remainingTimeToLive(*ec++);
        (void)lock.forceUnlock(*ec++);
        client.connect(*ec++);
        const bool isHeld = lock.holdCount() != 0 || lock.validFor() != 0ms || guard || guard.validFor() != 0ms ||
                            !lock.stopToken().stop_requested();
        const bool isRefused = std::ranges::all_of(codes, [](const auto& code) { return code == Errc::forked; });
        ::_exit(isHeld || !isRefused ? 100 : static_cast<int>(std::min<std::size_t>(allocations - before, 99)));
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << "allocations; 100: not refused";
}

TEST_F(AllocationCount, ManyNamesInTurnAllocateNothing)
{
    std::vector<RedisLock> locks;
    for (int i = 0; i < 50; ++i) {
        locks.push_back(client.getLock(uniqueName()));
    }
    std::size_t turn = 0;
    const auto cycle = [&] {
        const auto& mine = locks[turn++ % locks.size()];
        mine.lock();
        expectReleased(mine.unlock());
    };
    EXPECT_EQ(countIn(cycle), 0U);
}

} // namespace
} // namespace redislock::test
