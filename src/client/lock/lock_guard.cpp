#include "redislock/lock_guard.hpp"

#include "client/completion.hpp"
#include "client/lock/lock_access.hpp"
#include "client/lock/thread_calls.hpp"

#include <boost/asio/system_executor.hpp>

#include <algorithm>
#include <utility>

namespace redislock {

LockGuard::LockGuard(const Lock& lock) : LockGuard(lock, waitForever, keepRenewing) {}

LockGuard::LockGuard(const Lock& lock, std::error_code& ec) : LockGuard(lock, waitForever, keepRenewing, ec) {}

LockGuard::LockGuard(const Lock& lock, std::stop_token stop)
    : LockGuard(lock, waitForever, keepRenewing, std::move(stop))
{
}

LockGuard::LockGuard(const Lock& lock, std::stop_token stop, std::error_code& ec)
    : LockGuard(lock, waitForever, keepRenewing, std::move(stop), ec)
{
}

LockGuard::LockGuard(const Lock& lock, Wait wait, Lease lease, std::stop_token stop)
{
    std::error_code ec;
    std::exception_ptr thrown;
    acquire(lock, wait, lease, stop, ec, &thrown);
    if (ec) {
        lock.fail("lock", lease, ec, thrown);
    }
}

LockGuard::LockGuard(const Lock& lock, Wait wait, Lease lease, std::error_code& ec)
{
    acquire(lock, wait, lease, {}, ec);
}

LockGuard::LockGuard(const Lock& lock, Wait wait, Lease lease, std::stop_token stop, std::error_code& ec)
{
    acquire(lock, wait, lease, stop, ec);
}

void LockGuard::acquire(const Lock& lock, Wait wait, Lease lease, const std::stop_token& stop, std::error_code& ec,
                        std::exception_ptr* thrown)
{
    detail::Acquired acquired;
    ec = detail::ThreadCalls::acquire(
        *lock.state_, detail::LockAccess::order(lock, wait, lease, detail::EndedBy::guard, nullptr, thrown), stop,
        acquired);
    *this = LockGuard(std::move(acquired));
}

LockGuard::LockGuard(detail::Acquired&& acquired) noexcept
    : hold_(std::move(acquired.hold)), level_(acquired.level), token_(acquired.token)
{
}

LockGuard::LockGuard(LockGuard&& other) noexcept
    : hold_(std::move(other.hold_)), level_(std::exchange(other.level_, 0)), token_(std::exchange(other.token_, 0))
{
}

LockGuard& LockGuard::operator=(LockGuard&& other) noexcept
{
    if (this != &other) {
        end();
        hold_ = std::move(other.hold_);
        level_ = std::exchange(other.level_, 0);
        token_ = std::exchange(other.token_, 0);
    }
    return *this;
}

LockGuard::~LockGuard()
{
    end();
}

void LockGuard::end() noexcept
{
    token_ = 0;
    if (const auto hold = std::move(hold_)) {
        detail::ThreadCalls::releaseUnawaited({hold, level_});
    }
}

LockGuard::operator bool() const noexcept
{
    return hold_ && BootClock::now() < hold_->validUntil() && !detail::engineOf(*hold_->lock).isForked();
}

Unlocked LockGuard::release()
{
    std::error_code ec;
    const Unlocked how = release(ec);
    if (ec) {
        throw LockError(ec, "release(): the guard holds nothing");
    }
    return how;
}

Unlocked LockGuard::release(std::error_code& ec)
{
    ec.clear();
    token_ = 0;
    auto hold = std::move(hold_);
    if (!hold) {
        ec = Errc::notHeld;
        return Unlocked::alreadyLost;
    }
    return detail::ThreadCalls::release({std::move(hold), level_});
}

void LockGuard::asyncRelease(LockGuard guard, detail::UnlockHandler handler)
{
    const auto hold = guard.hold_; // the guard ends the hold if this throws
    if (!hold) {
        detail::Completion<Unlocked>(std::move(handler), boost::asio::system_executor())(std::error_code(Errc::notHeld),
                                                                                         Unlocked::alreadyLost);
        return;
    }
    detail::AsyncCalls::release({hold, guard.level_}, std::move(handler));
    guard.hold_.reset();
}

std::stop_token LockGuard::stopToken(StopAt when) const noexcept
{
    return detail::ThreadCalls::stopToken(hold_.get(), when);
}

std::chrono::milliseconds LockGuard::validFor() const noexcept
{
    if (!*this) {
        return {};
    }
    const auto left = std::chrono::floor<std::chrono::milliseconds>(hold_->validUntil() - BootClock::now());
    return std::max(std::chrono::milliseconds{}, left);
}

} // namespace redislock
