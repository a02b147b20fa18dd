#include "redislock/permit.hpp"

#include "runtime/counter/counter_async.hpp"
#include "runtime/counter/permit_hold.hpp"

#include <boost/asio/system_executor.hpp>

#include <algorithm>
#include <utility>

namespace redislock {

using namespace detail;

namespace {

CounterRequest<Unlocked> releaseOf(const PermitHold& hold)
{
    NamedCounter& counter = *hold.counter;
    counter.remove(hold.id);
    return permitRelease(counter, hold.id, hold.open > 0 ? counter.recordTime() : "0");
}

} // namespace

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
    if (hold == nullptr || hold->counter->isForked()) {
        return;
    }
    try {
        hold->counter->askUnawaited(releaseOf(*hold).call);
    } catch (...) { // out of memory: it ends with its lease
    }
}

Permit::operator bool() const noexcept
{
    return hold_ && BootClock::now() < hold_->validUntil() && !hold_->counter->isForked();
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
    static const std::string none;
    return hold_ ? hold_->id : none;
}

Unlocked Permit::release()
{
    std::error_code ec;
    const Unlocked how = release(ec);
    if (ec) {
        throw LockError(ec, "release of an empty permit");
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
    if (hold->counter->isForked()) {
        return Unlocked::alreadyLost;
    }
    const auto request = releaseOf(*hold);
    std::error_code error;
    const Unlocked how = hold->counter->ask(request, error);
    if (error == Errc::wouldDeadlock) { // on the client's own thread: it does not wait
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
    hold->counter->asyncAsk(releaseOf(*hold), std::move(handler));
}

} // namespace redislock
