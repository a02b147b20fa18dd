#include "client/group/group_lock.hpp"

#include "client/completion.hpp"
#include "client/group/group_acquire.hpp"
#include "client/lock/lock_access.hpp"
#include "client/lock/throwing.hpp"
#include "redislock/group_lock.hpp"
#include "redislock/multi_lock.hpp"
#include "redislock/red_lock.hpp"
#include "redislock/segmented_lock.hpp"
#include "values/printable.hpp"
#include "values/server_text.hpp"
#include "values/system/process.hpp"

#include <boost/asio/system_executor.hpp>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace redislock {

namespace detail {

namespace {

/// All by which a deployment can be told from others: two that share one of these are the same.
std::vector<std::string> namesOfDeployment(const Config& config)
{
    std::vector<std::string> names;
    for (const auto& node : config.cluster) {
        names.push_back(node.str());
    }
    if (!config.sentinels) {
        return names.empty() ? std::vector{config.endpoint.str()} : names;
    }
    for (const auto& sentinel : config.sentinels->endpoints) {
        names.push_back(config.sentinels->name + " of " + sentinel.str());
    }
    return names;
}

/// Refuses a second member that is the same lock as the first, or would wait for it.
void requireDistinct(const GroupMembers& members)
{
    std::set<std::tuple<std::string, std::uint32_t, std::string>> seen;
    for (const auto& lock : members.locks) {
        const Config& config = LockAccess::engine(lock).config();
        const std::string server = serverText(config);
        bool fresh = true;
        for (const auto& name : namesOfDeployment(config)) {
            fresh = fresh && (members.rule == GroupMembers::Rule::majority
                                  ? seen.emplace(name, 0, "").second
                                  : seen.emplace(name, config.database, lock.name()).second);
        }
        if (!fresh) {
            throw LockError(Errc::invalidArgument,
                            members.str() +
                                (members.rule == GroupMembers::Rule::majority
                                     ? ": every member needs a server of its own, but " + server + " is given twice"
                                     : ": \"" + printable(lock.name()) + "\" is given twice"));
        }
    }
}

} // namespace

std::shared_ptr<GroupState> GroupState::make(GroupMembers::Rule rule, std::vector<Lock> locks)
{
    if (locks.empty()) {
        throw LockError(Errc::invalidArgument, "a group needs at least one lock");
    }
    const auto members = std::make_shared<const GroupMembers>(GroupMembers{std::move(locks), rule});
    requireDistinct(*members);
    return std::shared_ptr<GroupState>(new GroupState(members));
}

std::optional<Errc> GroupState::refusal(Lease lease) const
{
    return !lease.isValid()       ? std::optional(Errc::invalidArgument)
           : members_->isForked() ? std::optional(Errc::forked)
                                  : std::nullopt;
}

GroupGuard GroupState::acquire(Wait wait, Lease lease, std::shared_ptr<const RetryPolicy> retry,
                               const std::stop_token& stop, std::error_code& ec, std::exception_ptr* thrown) const
{
    ec.clear();
    if (const auto refused = refusal(lease)) {
        ec = *refused;
        return {};
    }
    if (stop.stop_requested()) {
        return {};
    }
    if (members_->isOwnThread()) {
        ec = Cause::clientsThread;
        return {};
    }
    std::shared_ptr<GroupHold> hold;
    ec = std::make_shared<GroupAcquire>(members_, GroupAcquire::Order{wait, lease, std::move(retry), thrown, stop})
             ->run(hold);
    return guardOf(std::move(hold));
}

void GroupState::asyncAcquire(Wait wait, Lease lease, std::shared_ptr<const RetryPolicy> retry,
                              GroupHandler handler) const
{
    auto completion = std::make_shared<Completion<GroupGuard>>(std::move(handler), members_->handlerExecutor());
    if (const auto refused = refusal(lease)) {
        return (*completion)(std::error_code(*refused), GroupGuard());
    }
    const auto operation = std::make_shared<GroupAcquire>(members_, GroupAcquire::Order{wait, lease, std::move(retry)});
    completion->onCancellation([weak = std::weak_ptr(operation)] {
        if (const auto self = weak.lock()) {
            self->cancel();
        }
    });
    operation->start([completion](boost::system::error_code ec, std::shared_ptr<GroupHold> hold) {
        (*completion)(ec, guardOf(std::move(hold)));
    });
}

bool GroupState::lock(Wait wait, Lease lease, std::shared_ptr<const RetryPolicy> retry, const std::stop_token& stop,
                      std::error_code& ec, std::exception_ptr* thrown)
{
    const auto own = held();
    if (!stop.stop_requested() && own && BootClock::now() < own->validUntil()) {
        ec = Cause::heldAlready;
        return false;
    }
    auto hold = holdOf(acquire(wait, lease, std::move(retry), stop, ec, thrown));
    if (hold == nullptr) {
        return false;
    }
    const std::lock_guard lock(mutex_);
    holds_[currentThread()] = std::move(hold);
    return true;
}

Unlocked GroupState::unlock(std::error_code& ec)
{
    ec.clear();
    std::shared_ptr<GroupHold> hold;
    if (!members_->isForked()) {
        const std::lock_guard lock(mutex_);
        if (const auto own = holds_.extract(currentThread())) {
            hold = own.mapped();
        }
    }
    if (hold == nullptr) {
        ec = Errc::notHeld;
        return Unlocked::alreadyLost;
    }
    return hold->release();
}

std::shared_ptr<GroupHold> GroupState::held() const
{
    if (members_->isForked()) {
        return nullptr;
    }
    const std::lock_guard lock(mutex_);
    const auto own = holds_.find(currentThread());
    return own == holds_.end() ? nullptr : own->second;
}

/// With the words of the member that last met the error.
FailedCall GroupState::failedCall(const char* verb, const std::error_code& ec) const
{
    FailedCall failed{std::string(verb) + " " + members_->str(), {}};
    TimePoint last{};
    for (const auto& lock : members_->locks) {
        const LastErrors& lastErrors = LockAccess::engine(lock).lastErrors();
        const auto words = lastErrors.about(ec);
        if (last < words.saidAt) {
            last = words.saidAt;
            failed.words = lastErrors.server() + (words.text.empty() ? words.text : ": " + words.text);
        }
    }
    return failed;
}

namespace {

std::chrono::milliseconds timeUntil(TimePoint then) noexcept
{
    const auto left = std::chrono::floor<std::chrono::milliseconds>(then - BootClock::now());
    return std::max(std::chrono::milliseconds{}, left);
}

} // namespace

} // namespace detail

// --- The locks ------------------------------------------------------------------------------------------------------

namespace {

template <class Operation>
auto throwing(const detail::GroupState& state, const char* verb, Operation operation)
{
    return detail::throwing(std::move(operation),
                            [&](const std::error_code& ec) { return state.failedCall(verb, ec); });
}

} // namespace

MultiLock::MultiLock(std::vector<Lock> members)
    : GroupLock(detail::GroupState::make(detail::GroupMembers::Rule::all, std::move(members)))
{
}

RedLock::RedLock(std::vector<Lock> members)
    : GroupLock(detail::GroupState::make(detail::GroupMembers::Rule::majority, std::move(members)))
{
}

bool GroupLock::acquire(Wait wait, Lease lease, const Retry& retry, const std::stop_token& stop, std::error_code& ec,
                        std::exception_ptr* thrown) const
{
    return state_->lock(wait, lease, retry, stop, ec, thrown);
}

std::string GroupLock::describe(const std::error_code& ec, const char* call) const
{
    return state_->failedCall(call, ec).error(ec).what();
}

void GroupLock::asyncAcquire(Wait wait, Lease lease, const Retry& retry, detail::GroupHandler handler) const
{
    state_->asyncAcquire(wait, lease, retry, std::move(handler));
}

void GroupLock::fail(const char* verb, Lease lease, const std::error_code& ec, const std::exception_ptr& thrown) const
{
    detail::failNesting(thrown, ec, state_->failedCall(verb, ec), lease);
}

Unlocked GroupLock::unlock() const
{
    return throwing(*state_, "unlock", [&](std::error_code& ec) { return unlock(ec); });
}

Unlocked GroupLock::unlock(std::error_code& ec) const
{
    return state_->unlock(ec);
}

bool GroupLock::isHeldByCurrentThread() const noexcept
{
    const auto hold = state_->held();
    return hold && BootClock::now() < hold->validUntil();
}

std::chrono::milliseconds GroupLock::validFor() const noexcept
{
    const auto hold = state_->held();
    return hold ? detail::timeUntil(hold->validUntil()) : std::chrono::milliseconds{};
}

std::stop_token GroupLock::stopToken(StopAt when) const noexcept
{
    const auto hold = state_->held();
    return hold ? hold->stopToken(when) : detail::Core::stoppedToken();
}

// --- The guard ------------------------------------------------------------------------------------------------------

GroupGuard::GroupGuard(std::shared_ptr<detail::GroupHold> hold) noexcept : hold_(std::move(hold)) {}

GroupGuard::GroupGuard(const GroupLock& lock) : GroupGuard(lock, waitForever, keepRenewing) {}

GroupGuard::GroupGuard(const GroupLock& lock, std::error_code& ec) : GroupGuard(lock, waitForever, keepRenewing, ec) {}

GroupGuard::GroupGuard(const GroupLock& lock, std::stop_token stop)
    : GroupGuard(lock, waitForever, keepRenewing, std::move(stop))
{
}

GroupGuard::GroupGuard(const GroupLock& lock, std::stop_token stop, std::error_code& ec)
    : GroupGuard(lock, waitForever, keepRenewing, std::move(stop), ec)
{
}

GroupGuard::GroupGuard(const GroupLock& lock, Wait wait, Lease lease, std::stop_token stop)
{
    std::error_code ec;
    *this = GroupGuard(lock, wait, lease, std::move(stop), ec);
    if (ec) {
        lock.fail("lock", lease, ec, nullptr);
    }
}

GroupGuard::GroupGuard(const GroupLock& lock, Wait wait, Lease lease, std::error_code& ec)
    : GroupGuard(lock, wait, lease, std::stop_token(), ec)
{
}

GroupGuard::GroupGuard(const GroupLock& lock, Wait wait, Lease lease, std::stop_token stop, std::error_code& ec)
    : GroupGuard(lock.state_->acquire(wait, lease, nullptr, stop, ec))
{
}

GroupGuard& GroupGuard::operator=(GroupGuard&& other) noexcept
{
    if (this != &other) {
        end();
        hold_ = std::move(other.hold_);
    }
    return *this;
}

GroupGuard::~GroupGuard()
{
    end();
}

void GroupGuard::end() noexcept
{
    if (const auto hold = std::move(hold_)) {
        hold->end();
    }
}

GroupGuard::operator bool() const noexcept
{
    return hold_ && BootClock::now() < hold_->validUntil();
}

Unlocked GroupGuard::release()
{
    std::error_code ec;
    const Unlocked how = release(ec);
    if (ec) {
        throw LockError(ec, "release(): the guard holds nothing");
    }
    return how;
}

Unlocked GroupGuard::release(std::error_code& ec)
{
    ec.clear();
    const auto hold = std::move(hold_);
    if (!hold) {
        ec = Errc::notHeld;
        return Unlocked::alreadyLost;
    }
    return hold->release();
}

void GroupGuard::asyncRelease(GroupGuard guard, detail::UnlockHandler handler)
{
    const auto hold = std::move(guard.hold_);
    const auto executor =
        hold ? hold->members().handlerExecutor() : boost::asio::any_completion_executor(boost::asio::system_executor());
    const auto completion = std::make_shared<detail::Completion<Unlocked>>(std::move(handler), executor);
    if (!hold) {
        return (*completion)(std::error_code(Errc::notHeld), Unlocked::alreadyLost);
    }
    hold->release([completion](Unlocked how) { (*completion)({}, how); });
}

std::stop_token GroupGuard::stopToken(StopAt when) const noexcept
{
    return hold_ ? hold_->stopToken(when) : detail::Core::stoppedToken();
}

std::chrono::milliseconds GroupGuard::validFor() const noexcept
{
    return hold_ ? detail::timeUntil(hold_->validUntil()) : std::chrono::milliseconds{};
}

std::size_t GroupGuard::heldMembers() const noexcept
{
    return hold_ ? hold_->heldMembers() : 0;
}

MultiLock SegmentedLock::all() const
{
    return MultiLock(locks_);
}

} // namespace redislock
