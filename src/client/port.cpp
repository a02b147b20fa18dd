// The engine as the core's port.
#include "client/engine.hpp"
#include "values/system/process.hpp"

#include <utility>

namespace redislock::detail {

namespace {

std::atomic<std::uint64_t> lastHolder{0};
std::atomic<std::uint64_t> lastRequest{0};

} // namespace

/// Unlocks the mutex, and writes what was queued meanwhile.
void Engine::exit() noexcept
{
    const bool queued = std::exchange(queued_, false);
    mutex_.unlock();
    if (queued) {
        try {
            node().commands.flush();
        } catch (...) { // out of memory: the next caller writes it
            return;
        }
    }
}

bool Engine::isForked() const noexcept
{
    return forkGeneration() != generation_;
}

HolderId Engine::nextHolder() noexcept
{
    return HolderId{lastHolder.fetch_add(1, std::memory_order_relaxed) + 1};
}

std::uint64_t Engine::nextRequest() noexcept
{
    return lastRequest.fetch_add(1, std::memory_order_relaxed) + 1;
}

// --- Requests -------------------------------------------------------------------------------------------------------

bool Engine::submit(Lane lane, std::shared_ptr<Call> call, std::shared_ptr<Call> behind)
{
    if (lane == Lane::commands) {
        queued_ = true;
        return node().commands.enqueue(std::move(call), std::move(behind));
    }
    if (outboxClosed_) {
        return false;
    }
    if (lane == Lane::confirming) {
        post([this, call = std::move(call), behind = std::move(behind)] {
            node().confirmations.enqueue(call, behind);
            node().confirmations.work();
        });
        return true;
    }
    patiently([this] {
        if (outbox_.capacity() < outbox_.size() + 2) {
            outbox_.reserve(2 * outbox_.size() + 2);
        }
    });
    if (outbox_.empty()) {
        post([this] { sendOutbox(); });
    }
    for (auto* each : {&call, &behind}) {
        if (*each != nullptr) {
            (*each)->pending = true;
            outbox_.push_back(std::move(*each));
        }
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
            node().renewals.enqueue(*next);
        } catch (...) { // out of memory: recover() sends them
            lock.lock();
            patiently([&] { outbox_.insert(outbox_.begin(), next, calls.end()); });
            throw;
        }
    }
    node().renewals.flush();
}

void Engine::submitIfConnected(std::vector<std::shared_ptr<Call>> calls)
{
    post([this, calls = std::move(calls)]() mutable {
        auto& renewals = node().renewals;
        const bool byCommands = node().commands.isConnected();
        if (byCommands || renewals.isConnected()) {
            for (auto& call : calls) {
                byCommands ? (void)node().commands.enqueue(std::move(call)) : renewals.enqueue(std::move(call));
            }
            byCommands ? node().commands.flush() : renewals.flush();
        }
        calls.clear();
    });
}

/// Background thread.
bool Engine::withdraw(Call& call)
{
    const auto waits = [&call](const auto& other) { return other.get() == &call; };
    if (std::erase_if(outbox_, waits) == 0 && !node().renewals.withdraw(call)) {
        return false;
    }
    call.pending = false;
    return true;
}

Fault Engine::giveUp(Lane lane, Call& call) noexcept
{
    if (lane == Lane::commands) {
        return node().commands.giveUp(call);
    }
    const bool sent = !withdraw(call);
    if (sent) {
        call.mode = Call::Mode::abandoned;
    }
    return node().renewals.overdue(sent);
}

// --- What is published ----------------------------------------------------------------------------------------------

void Engine::want(std::string channel, ChannelListener listener)
{
    post([this, channel = std::move(channel), listener = std::move(listener)] {
        node().subscriber.want(channel, listener);
    });
}

void Engine::drop(std::string channel, ChannelListener listener)
{
    post([this, channel = std::move(channel), listener = std::move(listener)] {
        node().subscriber.drop(channel, listener);
    });
}

// --- Time, and what others are told ---------------------------------------------------------------------------------

void Engine::after(TimePoint when, std::function<void()> what)
{
    auto due = patiently([&] {
        return std::function<void()>([this, what = std::move(what)] {
            const Inside inside(*this);
            what();
        });
    });
    background_->later(when, std::move(due));
}

void Engine::tell(std::function<void(Observer&)> what)
{
    if (config_.observer) {
        post([this, what = std::move(what)] { what(*config_.observer); });
    }
}

} // namespace redislock::detail
