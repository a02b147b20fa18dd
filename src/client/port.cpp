// The engine as the core's port.
#include "client/engine.hpp"
#include "link/request/calls.hpp"
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
            flush();
        } catch (...) { // out of memory: the next caller writes it
            return;
        }
    }
}

void Engine::flush()
{
    route().forEach([](Node& node) { node.commands.flush(); });
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
    Node& node = route().choose(*call);
    std::shared_ptr<Call> asking; // where a slot is just being moved to
    if (call->isAsking) {
        asking = patiently([] { return std::make_shared<CommandCall>(std::vector<std::string>{"ASKING"}); });
        asking->mode = Call::Mode::detached;
        asking->server = call->server;
    }
    if (behind != nullptr) {
        behind->isAsking = false;
        behind->server = call->server;
    }
    if (lane == Lane::commands) {
        queued_ = true;
        if (asking == nullptr) {
            return node.commands.enqueue(std::move(call), std::move(behind));
        }
        return node.commands.enqueue(std::move(asking), std::move(call)) &&
               (behind == nullptr || node.commands.enqueue(std::move(behind)));
    }
    if (outboxClosed_) {
        return false;
    }
    if (lane == Lane::confirming) {
        post([&node, call = std::move(call), behind = std::move(behind)] {
            node.confirmations.enqueue(call, behind);
            node.confirmations.work();
        });
        return true;
    }
    patiently([this] {
        if (outbox_.capacity() < outbox_.size() + 3) {
            outbox_.reserve(2 * outbox_.size() + 3);
        }
    });
    if (outbox_.empty()) {
        post([this] { sendOutbox(); });
    }
    for (auto* each : {&asking, &call, &behind}) {
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
            route().of(**next).renewals.enqueue(*next);
        } catch (...) { // out of memory: recover() sends them
            lock.lock();
            patiently([&] { outbox_.insert(outbox_.begin(), next, calls.end()); });
            throw;
        }
    }
    route().forEach([](Node& node) { node.renewals.flush(); });
}

void Engine::submitIfConnected(std::vector<std::shared_ptr<Call>> calls)
{
    post([this, calls = std::move(calls)]() mutable {
        for (auto& call : calls) {
            Node& node = route().choose(*call);
            if (node.commands.isConnected()) {
                (void)node.commands.enqueue(std::move(call));
            } else if (node.renewals.isConnected()) {
                node.renewals.enqueue(std::move(call));
            }
        }
        flush();
        route().forEach([](Node& node) { node.renewals.flush(); });
        calls.clear();
    });
}

/// Background thread.
bool Engine::withdraw(Call& call)
{
    const auto waits = [&call](const auto& other) { return other.get() == &call; };
    if (std::erase_if(outbox_, waits) == 0 && !route().of(call).renewals.withdraw(call)) {
        return false;
    }
    call.pending = false;
    return true;
}

Fault Engine::giveUp(Lane lane, Call& call) noexcept
{
    if (lane == Lane::commands) {
        return commandsFor(call).giveUp(call);
    }
    const bool sent = !withdraw(call);
    if (sent) {
        call.mode = Call::Mode::abandoned;
    }
    return route().of(call).renewals.overdue(sent);
}

// --- What is published ----------------------------------------------------------------------------------------------

void Engine::want(std::string channel, ChannelListener listener)
{
    post([this, channel = std::move(channel), listener = std::move(listener)] { route().want(channel, listener); });
}

void Engine::drop(std::string channel, ChannelListener listener)
{
    post([this, channel = std::move(channel), listener = std::move(listener)] { route().drop(channel, listener); });
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
