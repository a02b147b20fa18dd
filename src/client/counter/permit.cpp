#include "redislock/permit.hpp"

#include "client/counter/counter_calls.hpp"
#include "core/counter/permit_requests.hpp"
#include "values/immortal.hpp"

#include <boost/asio/system_executor.hpp>

#include <algorithm>
#include <utility>

namespace redislock {

using namespace detail;

Permit& Permit::operator=(Permit&& other) noexcept
{
    if (this != &other) {
        end();
        hold_ = std::move(other.hold_);
    }
    return *this;
}

Permit::~Permit()
{
    end();
}

void Permit::end() noexcept
{
    const auto hold = std::move(hold_);
    if (hold == nullptr || hold->counter->port->isForked()) {
        return;
    }
    try {
        hold->counter->askUnawaited(permitRelease(*hold));
    } catch (...) { // out of memory: the permit ends with its lease
    }
}

Permit::operator bool() const noexcept
{
    return hold_ && BootClock::now() < hold_->validUntil() && !hold_->counter->port->isForked();
}

std::chrono::milliseconds Permit::validFor() const noexcept
{
    if (!*this) {
        return {};
    }
    const TimePoint until = hold_->validUntil();
    if (until == TimePoint::max()) {
        return std::chrono::milliseconds::max();
    }
    return std::max(std::chrono::milliseconds{},
                    std::chrono::floor<std::chrono::milliseconds>(until - BootClock::now()));
}

const std::string& Permit::id() const noexcept
{
    static const detail::Immortal<std::string> none;
    return hold_ ? hold_->id : none.get();
}

Unlocked Permit::release()
{
    std::error_code ec;
    const Unlocked how = release(ec);
    if (ec) {
        throw LockError(ec, "release(): this object has no permit");
    }
    return how;
}

Unlocked Permit::release(std::error_code& ec)
{
    ec.clear();
    const auto hold = std::move(hold_);
    if (!hold) {
        ec = Errc::notHeld;
        return Unlocked::alreadyLost;
    }
    if (hold->counter->port->isForked()) {
        return Unlocked::alreadyLost;
    }
    const auto request = permitRelease(*hold);
    std::error_code error;
    const Unlocked how = CounterCalls::ask(*hold->counter, request, error);
    if (error == Errc::wouldDeadlock) { // on the client's own thread: the release does not wait
        hold->counter->askUnawaited(request.call);
    }
    return error == Errc::shutdown ? Unlocked::alreadyLost : how;
}

void Permit::startRelease(Permit permit, UnlockHandler handler)
{
    const auto hold = std::move(permit.hold_);
    if (!hold) {
        Completion<Unlocked>(std::move(handler), boost::asio::system_executor())(std::error_code(Errc::notHeld),
                                                                                 Unlocked::alreadyLost);
        return;
    }
    CounterCalls::asyncAsk(hold->counter, permitRelease(*hold), std::move(handler));
}

} // namespace redislock
