#include "link/background_link.hpp"

#include "wire/assert.hpp"
#include "wire/command.hpp"

#include <atomic>
#include <new>
#include <utility>

namespace redislock::detail {

/// A call in the queue of the other connection. It is that connection's, but the call itself stays here.
struct BackgroundLink::Lent final : Call {
    Lent(std::shared_ptr<Call> lent, std::function<void()> tell) : call(std::move(lent)), ring(std::move(tell))
    {
        mode = Mode::detached;
        isHurried = call->isHurried;
    }

    /// An answer to an abandoned one is expected all the same, but its call may be over.
    void encode(std::string& out, Form by) override
    {
        mode == Mode::abandoned ? appendCommand(out, {"PING"}) : call->encode(out, by);
    }
    [[nodiscard]] Subject subject() const override { return mode == Mode::abandoned ? Subject() : call->subject(); }
    [[nodiscard]] bool isWanted(TimePoint now) const noexcept override
    {
        return call->mode != Mode::abandoned && call->isWanted(now);
    }
    [[nodiscard]] Slot slot() const noexcept override { return call->slot(); }
    void finished() noexcept override
    {
        hasEnded = true;
        ring();
    }

    const std::shared_ptr<Call> call;
    const std::function<void()> ring;
    std::atomic<bool> hasEnded{false};
};

void BackgroundLink::lendTo(ThreadLink& other, std::function<void()> ring)
{
    other_ = &other;
    ring_ = std::move(ring);
}

void BackgroundLink::lend(std::shared_ptr<Call> call)
{
    REDISLOCK_ASSERT(other_ != nullptr);
    call->pending = true;
    lent_.push_back(std::make_shared<Lent>(std::move(call), ring_));
    try {
        (void)other_->enqueue(lent_.back()); // if it has been shut down, so will this be
    } catch (...) {
        lent_.pop_back();
        throw;
    }
    link_.want(true);
}

/// Ends a lent call.
void BackgroundLink::giveBack(const Lent& lent, Outcome outcome)
{
    link_.want(isKept_ || !lent_.empty());
    FinishedCalls finished;
    Link::finish(lent.call, outcome, finished);
}

void BackgroundLink::takeBack()
{
    while (!lent_.empty() && lent_.front()->hasEnded) {
        const auto lent = lent_.front();
        lent_.pop_front();
        std::swap(lent->call->reply, lent->reply);
        lent->call->sentAt = lent->sentAt;
        giveBack(*lent, lent->outcome);
    }
}

/// What needs no order, and the other connection has not answered, is asked again on this one.
void BackgroundLink::whenOpened()
{
    isAbsent_ = false;
    for (std::size_t i = 0; i < lent_.size();) {
        const auto lent = lent_[i];
        if (lent->hasEnded || !lent->call->isInNoOrder()) {
            ++i;
            continue;
        }
        lent_.erase(lent_.begin() + static_cast<std::ptrdiff_t>(i));
        (void)other_->giveUp(*lent);
        giveBack(*lent, {false, {Failure::lostReply, Cause::silent}});
    }
}

void BackgroundLink::whenFailed() noexcept
{
    isAbsent_ = true;
    if (lent_.empty() && !other_->isConnected()) {
        return;
    }
    try {
        for (; !link_.queue().empty(); (void)link_.takeFirst()) {
            lend(link_.queue()[0]);
        }
        other_->flush();
    } catch (const std::bad_alloc&) { // the others end with the attempt
        return;
    }
}

Connected BackgroundLink::give()
{
    if (!link_.takesRequests() || !link_.queue().empty()) {
        return {Stream{}, Fault{}};
    }
    isAbsent_ = true;
    return LoopLink::give();
}

void BackgroundLink::keep(bool on)
{
    isKept_ = on;
    link_.want(isKept_ || !lent_.empty());
    work();
}

void BackgroundLink::enqueue(std::shared_ptr<Call> call)
{
    const bool isLent =
        (!lent_.empty() && !call->isInNoOrder()) || (isAbsent_ && link_.queue().empty() && other_->isConnected());
    if (isLent && link_.state() != Link::State::closed) {
        return lend(std::move(call));
    }
    hurried_ = hurried_ || call->isHurried;
    CallLink::enqueue(call);
}

void BackgroundLink::flush()
{
    if (!lent_.empty()) {
        other_->flush();
    }
    work();
    if (std::exchange(hurried_, false)) {
        hurry();
    }
}

void BackgroundLink::close()
{
    LoopLink::close();
    takeBack();
    for (const auto& lent : std::exchange(lent_, {})) {
        giveBack(*lent, {false, {Failure::fatal, Errc::shutdown}});
    }
}

} // namespace redislock::detail
