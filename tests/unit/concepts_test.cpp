#include "redislock/redislock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <concepts>
#include <mutex>
#include <type_traits>

namespace redislock {
namespace {

// The named requirements of the standard (thread.req.lockable), which has no concepts for them.

template <class L>
concept BasicLockable = requires(L& m)
{
    m.lock();
    m.unlock();
};

template <class L>
concept Lockable = BasicLockable<L> && requires(L& m)
{
    {
        m.try_lock()
        } -> std::convertible_to<bool>;
};

template <class L, class Duration, class TimePoint>
concept TimedLockable = Lockable<L> && requires(L& m, const Duration& wait, const TimePoint& until)
{
    {
        m.try_lock_for(wait)
        } -> std::convertible_to<bool>;
    {
        m.try_lock_until(until)
        } -> std::convertible_to<bool>;
};

template <class L, class Duration>
concept TimedLockableFor = TimedLockable<L, Duration, std::chrono::time_point<std::chrono::steady_clock, Duration>> &&
    TimedLockable<L, Duration, std::chrono::time_point<std::chrono::system_clock, Duration>> &&
    TimedLockable<L, Duration, std::chrono::time_point<BootClock, Duration>>;

struct NotEvenBasic {
    void lock();
};
static_assert(BasicLockable<std::mutex> && Lockable<std::mutex> && !BasicLockable<NotEvenBasic>);
static_assert(TimedLockableFor<std::recursive_timed_mutex, std::chrono::nanoseconds>);
static_assert(!TimedLockableFor<std::mutex, std::chrono::nanoseconds>);

static_assert(BasicLockable<RedisLock> && Lockable<RedisLock>);
static_assert(BasicLockable<const RedisLock> && Lockable<const RedisLock>);
static_assert(TimedLockableFor<RedisLock, std::chrono::nanoseconds>);
static_assert(TimedLockableFor<RedisLock, std::chrono::milliseconds>);
static_assert(TimedLockableFor<RedisLock, std::chrono::hours>);
static_assert(TimedLockableFor<const RedisLock, std::chrono::duration<double>>);

static_assert(std::constructible_from<std::scoped_lock<RedisLock, RedisLock>, RedisLock&, RedisLock&>);
static_assert(std::constructible_from<std::lock_guard<RedisLock>, RedisLock&>);
static_assert(std::constructible_from<std::unique_lock<RedisLock>, RedisLock&, std::chrono::seconds>);
static_assert(std::constructible_from<std::unique_lock<RedisLock>, RedisLock&, TimePoint>);

// A lock is a value: a name and a client.
static_assert(std::copyable<RedisLock> && std::is_nothrow_move_constructible_v<RedisLock>);
static_assert(!std::is_default_constructible_v<RedisLock>);
template <class... Values>
constexpr bool areCopiedAndMovedWithoutThrowing = (... && (std::is_nothrow_copy_constructible_v<Values> &&
                                                           std::is_nothrow_copy_assignable_v<Values> &&
                                                           std::is_nothrow_move_constructible_v<Values> &&
                                                           std::is_nothrow_move_assignable_v<Values>));
static_assert(areCopiedAndMovedWithoutThrowing<RedisLock, NonReentrantLock, SpinLock, FairLock, FencedLock, ReadLock,
                                               WriteLock, ReadWriteLock, MultiLock, RedLock, Semaphore,
                                               PermitExpirableSemaphore, CountDownLatch>);

// A guard is the one owner of its hold, and is never made by accident.
static_assert(std::movable<LockGuard> && !std::copy_constructible<LockGuard>);
static_assert(!std::is_assignable_v<LockGuard&, const LockGuard&>);
static_assert(std::is_nothrow_move_constructible_v<LockGuard> && std::is_nothrow_move_assignable_v<LockGuard>);
static_assert(std::is_nothrow_destructible_v<LockGuard> && std::is_nothrow_default_constructible_v<LockGuard>);
static_assert(std::constructible_from<LockGuard, const RedisLock&, Wait, Lease>);
static_assert(std::constructible_from<LockGuard, RedisLock&, std::chrono::milliseconds, std::chrono::hours>);
static_assert(std::constructible_from<LockGuard, RedisLock&, std::error_code&>);
static_assert(!std::convertible_to<RedisLock&, LockGuard>);

// One plain duration would be taken for a wait by some, and for a lease by others.
template <class Guard, class L, class Argument>
concept OfOneArgument = requires(L& lock, Argument argument)
{
    Guard(lock, argument);
};
template <class Guard, class L, class Argument>
concept OfOneWithCode = requires(L& lock, Argument argument, std::error_code& ec)
{
    Guard(lock, argument, ec);
};
template <class Guard, class L, class Argument>
concept OfOneInBraces = requires(L& lock, Argument argument)
{
    Guard(lock, {argument});
};
template <class Guard, class L, class... Durations>
constexpr bool takesNone = !(... || (OfOneArgument<Guard, L, Durations> || OfOneWithCode<Guard, L, Durations> ||
                                     OfOneInBraces<Guard, L, Durations>));
static_assert(OfOneArgument<LockGuard, RedisLock, Lease> && OfOneWithCode<LockGuard, const FairLock, const Lease>);
static_assert(OfOneArgument<GroupGuard, RedLock, Lease> && OfOneWithCode<GroupGuard, const RedLock, const Lease>);
static_assert(takesNone<LockGuard, RedisLock, std::chrono::milliseconds, const std::chrono::hours, Wait>);
static_assert(takesNone<GroupGuard, const MultiLock, std::chrono::seconds, std::chrono::duration<float>, Wait>);

static_assert(std::constructible_from<bool, LockGuard&> && !std::convertible_to<LockGuard&, bool>);

static_assert(std::movable<Client> && !std::copy_constructible<Client>);
static_assert(!std::is_assignable_v<Client&, const Client&>);
static_assert(std::is_nothrow_move_constructible_v<Client> && std::is_nothrow_move_assignable_v<Client>);
static_assert(std::constructible_from<Client, const char*> && std::constructible_from<Client, Config>);
static_assert(!std::convertible_to<const char*, Client> && !std::convertible_to<Config, Client>);
static_assert(!std::is_default_constructible_v<Client>);

TEST(Concepts, AreProvenAtCompileTime)
{
    SUCCEED();
}

} // namespace
} // namespace redislock
