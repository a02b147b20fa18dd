#include "redislock/lock.hpp"

#include "client/lock/lock_access.hpp"
#include "client/lock/thread_calls.hpp"
#include "client/lock/throwing.hpp"
#include "redislock/lock_guard.hpp"
#include "values/durability_text.hpp"

#include <utility>

namespace redislock {

namespace {

using detail::throwing;

} // namespace

bool Lock::acquire(Wait wait, Lease lease, const Retry& retry, const std::stop_token& stop, std::error_code& ec,
                   std::exception_ptr* thrown) const
{
    return acquireByThread(wait, lease, retry, stop, ec, thrown).has_value();
}

void Lock::fail(const char* verb, Lease lease, const std::error_code& ec, const std::exception_ptr& thrown) const
{
    auto failed = detail::failedCall(*state_, verb, ec);
    if (ec == Errc::invalidArgument && lease.isValid()) {
        failed.call += ", whose durability (" + detail::inWords(durability_) + ") may take longer than the lease,";
    }
    if (ec == Errc::notDurable) {
        failed.call += " (" + detail::inWords(durability_) + ")";
    }
    detail::failNesting(thrown, ec, std::move(failed), lease);
}

std::optional<std::uint64_t> Lock::acquireByThread(Wait wait, Lease lease, const Retry& retry,
                                                   const std::stop_token& stop, std::error_code& ec,
                                                   std::exception_ptr* thrown) const
{
    detail::Acquired acquired;
    ec = detail::ThreadCalls::acquire(
        *state_, detail::LockAccess::order(*this, wait, lease, detail::EndedBy::thread, retry, thrown), stop, acquired);
    return acquired.hold != nullptr ? std::optional(acquired.token) : std::nullopt;
}

Unlocked Lock::unlock() const
{
    return throwing(*state_, "unlock", [&](std::error_code& ec) { return unlock(ec); });
}

Unlocked Lock::unlock(std::error_code& ec) const
{
    return detail::ThreadCalls::unlock(*state_, ec);
}

bool Lock::forceUnlock() const
{
    return throwing(*state_, "forceUnlock", [&](std::error_code& ec) { return forceUnlock(ec); });
}

bool Lock::forceUnlock(std::error_code& ec) const
{
    return detail::ThreadCalls::forceUnlock(*state_, ec);
}

bool Lock::isLocked() const
{
    return throwing(*state_, "isLocked", [&](std::error_code& ec) { return isLocked(ec); });
}

bool Lock::isLocked(std::error_code& ec) const
{
    return remainingTimeToLive(ec).has_value();
}

std::optional<std::chrono::milliseconds> Lock::remainingTimeToLive() const
{
    return throwing(*state_, "remainingTimeToLive", [&](std::error_code& ec) { return remainingTimeToLive(ec); });
}

std::optional<std::chrono::milliseconds> Lock::remainingTimeToLive(std::error_code& ec) const
{
    return detail::ThreadCalls::timeToLive(*state_, ec);
}

std::optional<LockReport> Lock::explain() const
{
    return throwing(*state_, "explain", [&](std::error_code& ec) { return explain(ec); });
}

std::optional<LockReport> Lock::explain(std::error_code& ec) const
{
    return detail::ThreadCalls::explain(*state_, ec);
}

bool Lock::isHeldByCurrentThread() const noexcept
{
    return holdCount() > 0;
}

std::uint32_t Lock::holdCount() const noexcept
{
    return detail::ThreadCalls::holdCount(*state_);
}

std::chrono::milliseconds Lock::validFor() const noexcept
{
    return detail::ThreadCalls::validFor(*state_);
}

std::stop_token Lock::stopToken(StopAt when) const noexcept
{
    return detail::ThreadCalls::stopToken(*state_, when);
}

const std::string& Lock::name() const noexcept
{
    return state_->name;
}

void Lock::asyncAcquire(Wait wait, Lease lease, const Retry& retry, detail::LockHandler handler) const
{
    detail::AsyncCalls::acquire(state_, detail::LockAccess::order(*this, wait, lease, detail::EndedBy::guard, retry),
                                std::move(handler));
}

void Lock::asyncForceUnlock(const State& state, detail::FlagHandler handler)
{
    detail::AsyncCalls::forceUnlock(state, std::move(handler));
}

void Lock::asyncIsLocked(const State& state, detail::FlagHandler handler)
{
    detail::AsyncCalls::isLocked(state, std::move(handler));
}

void Lock::asyncTimeToLive(const State& state, detail::TimeHandler handler)
{
    detail::AsyncCalls::timeToLive(state, std::move(handler));
}

} // namespace redislock
