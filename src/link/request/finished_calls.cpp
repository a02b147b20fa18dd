#include "link/request/finished_calls.hpp"

#include <utility>

namespace redislock::detail {

void FinishedCalls::add(std::shared_ptr<Call> call) noexcept
{
    awaited_ += call->mode == Call::Mode::awaited ? 1U : 0U;
    if (call->mode == Call::Mode::awaited && call.use_count() > 1) { // else its thread is gone
        Call& awaited = *call;
        call.reset(); // the waiting thread has a reference until the call is done
        const void* const address = awaited.signal.address();
        if (!awaited.signal.raise(Signal::done)) {
            return;
        }
        if (sleepers_ == addresses_.size()) {
            return Signal::wake(address);
        }
        addresses_[sleepers_++] = address;
        return;
    }
    Call* const added = call.get();
    (last_ != nullptr ? last_->next : first_) = std::move(call);
    last_ = added;
}

void FinishedCalls::tell() noexcept
{
    for (std::size_t i = 0; i < sleepers_; ++i) {
        Signal::wake(addresses_[i]);
    }
    sleepers_ = 0;
    last_ = nullptr;
    while (const auto call = std::move(first_)) {
        first_ = std::move(call->next); // a call that is told may be queued again in there
        if (call->mode == Call::Mode::detached) {
            call->finished();
        }
    }
}

} // namespace redislock::detail
