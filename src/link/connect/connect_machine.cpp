#include "link/connect/connect_machine.hpp"

#include "link/connect/handshake_machine.hpp"
#include "wire/assert.hpp"

#include <algorithm>

namespace redislock::detail {

namespace {

/// Which of several addresses' failures is reported: first one that may pass by itself, of a replica's after those of
/// others, then one that will not, then that a connection was taken and ended, at last that nobody answered.
int weightOf(const Fault& fault) noexcept
{
    if (fault.error == Errc::serverRefused) {
        return fault.error == Reason(Cause::readOnly) ? 3 : 4;
    }
    return fault.failure == Failure::fatal ? 2 : isHangUp(fault) ? 1 : 0;
}

} // namespace

ConnectMachine::Action ConnectMachine::resume(const Event& event)
{
    if (state_ == State::done) {
        return Wait{};
    }
    if (std::holds_alternative<Start>(event)) {
        REDISLOCK_ASSERT(state_ == State::idle);
        state_ = State::resolving;
        return Resolve{};
    }
    if (const auto* e = std::get_if<Resolved>(&event)) {
        REDISLOCK_ASSERT(state_ == State::resolving);
        state_ = State::trying;
        addresses_ = e->addresses;
        const auto share = e->left / static_cast<std::int64_t>(std::max<std::size_t>(addresses_, 1));
        pause_ = std::clamp<std::chrono::nanoseconds>(share, std::chrono::milliseconds(1), longestPause);
        return openNext();
    }
    if (const auto* e = std::get_if<Ready>(&event)) {
        REDISLOCK_ASSERT(state_ == State::trying && e->address < next_);
        state_ = State::done;
        return Done<std::size_t>{e->address};
    }
    if (const auto* e = std::get_if<Ended>(&event)) {
        REDISLOCK_ASSERT(state_ == State::trying && underWay_ > 0);
        return ended(e->fault);
    }
    if (std::holds_alternative<PauseOver>(event)) {
        REDISLOCK_ASSERT(state_ == State::trying);
        return next_ < addresses_ ? openNext() : Wait{};
    }
    if (const auto* e = std::get_if<NotFound>(&event)) {
        REDISLOCK_ASSERT(state_ == State::resolving);
        return failFor(e->why);
    }
    return failFor(std::get<TimeOver>(event).why);
}

ConnectMachine::Action ConnectMachine::openNext()
{
    if (next_ < addresses_) {
        ++underWay_;
        const std::size_t address = next_++;
        return Open{address, next_ < addresses_ ? pause_ : std::chrono::nanoseconds(0)};
    }
    return underWay_ > 0 ? Action(Wait{}) : fail();
}

ConnectMachine::Action ConnectMachine::ended(Fault fault)
{
    --underWay_;
    if (weightOf(fault) > weightOf(fault_) || weightOf(fault_) == 0) {
        fault_ = fault;
    }
    return openNext();
}

/// Fails with @p why, unless an address gave an answer that says more.
ConnectMachine::Action ConnectMachine::failFor(Reason why)
{
    fault_.error = weightOf(fault_) == 0 ? why : fault_.error;
    return fail();
}

ConnectMachine::Action ConnectMachine::fail()
{
    state_ = State::done;
    return Done<Fault>{fault_};
}

} // namespace redislock::detail
