#include "core/operation/operation.hpp"

#include "core/core.hpp"
#include "core/operation/background_run.hpp"

#include <utility>

namespace redislock::detail {

void setRequester(Call& call, BackgroundRun* run)
{
    call.mode = run == nullptr ? Call::Mode::awaited : Call::Mode::detached;
    call.requester = run == nullptr ? nullptr : run->keep();
}

void wakeOperation(Port& port, Call& call, BackgroundRun* run) noexcept
{
    run != nullptr ? run->look() : port.wake(call);
}

std::variant<Pause, Cancelled> pauseOf(const RetryPolicy& policy, std::uint32_t attempt, Random& random,
                                       std::exception_ptr* thrown)
{
    try {
        const auto pause = policy.pauseAfter(attempt, random);
        return Pause{{}, pause ? std::optional(pause->span()) : std::nullopt};
    } catch (...) {
        if (thrown != nullptr) {
            *thrown = std::current_exception();
        }
        return Cancelled{{}, Errc::invalidArgument};
    }
}

Fault Operation::giveUp()
{
    if (!call().pending) {
        return {};
    }
    const Fault fault = core_.port.giveUp(lane_, call());
    call().requester = nullptr; // whom nobody tells any more
    return fault;
}

bool Operation::submit(std::shared_ptr<Call> request, std::shared_ptr<Call> behind)
{
    setRequester(*request, run_);
    Call& sent = *request;
    if (core_.port.submit(lane_, std::move(request), std::move(behind))) {
        return true;
    }
    sent.requester = nullptr;
    return false;
}

bool Operation::takesBack()
{
    return call().pending && giveUp().failure == Failure::notConnected;
}

bool Operation::takesBackUnsent(const std::optional<Errc>& ended)
{
    if (!ended || run_ == nullptr || !call().pending || !core_.port.withdraw(call())) {
        return false;
    }
    call().requester = nullptr; // whom nobody tells any more
    return true;
}

} // namespace redislock::detail
