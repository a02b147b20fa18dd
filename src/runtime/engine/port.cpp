// What the logic asks for.
#include "runtime/engine/engine.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <utility>

namespace redislock::detail {

namespace {

std::atomic<std::uint64_t> lastHolder{0};

} // namespace

HolderId Engine::nextHolder() noexcept
{
    return HolderId{lastHolder.fetch_add(1, std::memory_order_relaxed) + 1};
}

// --- Requests ----------------------------------------------------------------------------------------------------------

bool Engine::submit(Lane lane, std::shared_ptr<Call> call, std::shared_ptr<Call> behind)
{
    if (lane == Lane::commands) {
        return commands_->enqueue(std::move(call), std::move(behind));
    }
    if (outboxClosed_) {
        return false;
    }
    const bool first = outbox_.empty();
    for (auto* each : {&call, &behind}) {
        if (*each != nullptr) {
            (*each)->pending = true;
            outbox_.push_back(std::move(*each));
        }
    }
    if (first) {
        post([this] { sendOutbox(); });
    }
    return true;
}

void Engine::sendOutbox()
{
    Lock lock(mutex_);
    const auto calls = std::exchange(outbox_, {});
    lock.unlock();
    for (auto next = calls.begin(); next != calls.end(); ++next) {
        try {
            background_->renewals.enqueue(*next);
        } catch (...) { // out of memory: recover() sends them
            lock.lock();
            outbox_.insert(outbox_.begin(), next, calls.end());
            throw;
        }
    }
    background_->renewals.flush();
}

/// Background thread.
bool Engine::withdraw(Call& call)
{
    const auto waits = [&call](const auto& other) { return other.get() == &call; };
    if (std::erase_if(outbox_, waits) == 0 && !background_->renewals.withdraw(call)) {
        return false;
    }
    call.pending = false;
    return true;
}

void Engine::leave(Call& call) noexcept
{
    (void)commands_->leave(call);
}

void Engine::fail(const std::shared_ptr<Call>& call, Errc why)
{
    commands_->withdraw(call, why);
}

// --- What is published -------------------------------------------------------------------------------------------------

void Engine::want(std::string channel, ChannelListener listener)
{
    post([this, channel = std::move(channel), listener = std::move(listener)] {
        background_->subscriber.want(channel, listener);
    });
}

void Engine::drop(std::string channel, ChannelListener listener)
{
    post([this, channel = std::move(channel), listener = std::move(listener)] {
        background_->subscriber.drop(channel, listener);
    });
}

// --- Time, and the background thread -----------------------------------------------------------------------------------

void Engine::alarm(TimePoint when) noexcept
{
    background_->renewalTimer.set(when);
}

void Engine::ring()
{
    {
        const Lock lock(mutex_);
        core_.renewing.ring();
    }
    sendOutbox();
}

void Engine::post(std::function<void()> what)
{
    boost::asio::post(background_->io, std::move(what));
}

/// Has something done on the background thread at that time; before, when the client ends. Any thread.
std::shared_ptr<Engine::Later> Engine::later(TimePoint when, std::function<void()> what)
{
    auto later = std::make_shared<Later>(Later{boost::asio::steady_timer(background_->io), std::move(what)});
    post([this, later, when] {
        if (background_->work.owns_work()) {
            background_->later.insert(later);
            later->timer.expires_after(when - BootClock::now());
        } // else the client has ended
        later->timer.async_wait([this, later](boost::system::error_code) {
            background_->later.erase(later);
            if (const auto due = std::exchange(later->what, nullptr)) {
                due();
            }
        });
    });
    return later;
}

void Engine::after(TimePoint when, std::function<void()> what)
{
    later(when, [this, what = std::move(what)] {
        {
            const Lock lock(mutex_);
            what();
        }
        commands_->flush();
    });
}

void Engine::tell(std::function<void(Observer&)> what)
{
    if (config_.observer) {
        post([this, what = std::move(what)] { what(*config_.observer); });
    }
}

// --- What is told ------------------------------------------------------------------------------------------------------

void Engine::forget(NamedLock& named) noexcept
{
    if (!isForked()) {
        const Lock lock(mutex_);
        core_.forget(named);
    }
}

/// Any thread.
void Engine::finished(HoldCall& call) noexcept
{
    Core::Finished end; // let go of after the mutex, and last: it may be what keeps this alive
    try {
        {
            const Lock lock(mutex_);
            end = core_.finished(call);
        }
        if (end.asking != nullptr) { // lives on this thread
            end.asking->answered(call);
        }
        commands_->flush();
    } catch (...) { // out of memory: the lock ends with its lease
        return;
    }
}

/// Background thread.
void Engine::heard(NamedLock& named, HolderId of, Notice notice)
{
    {
        const Lock lock(mutex_);
        core_.waking.heard(named, of, notice);
    }
    commands_->flush();
}

} // namespace redislock::detail
