// The beginning and the end of a client.
#include "client/engine.hpp"
#include "client/drive.hpp"
#include "core/operation/shutdown_flow.hpp"
#include "link/connect/own_descriptors.hpp"
#include "redislock/error.hpp"
#include "values/server_text.hpp"
#include "values/system/process.hpp"
#include "wire/codec.hpp"

#include <boost/asio/prefer.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <cstdint>
#include <new>
#include <string>
#include <utility>

namespace redislock::detail {

namespace asio = boost::asio;

namespace {

/// A random UUID of version 8. Those of Redisson's clients are of version 4: the scripts of fair locks tell them apart.
std::string freshId()
{
    auto id = boost::uuids::random_generator()();
    auto& version = *(id.begin() + 6);
    version = static_cast<std::uint8_t>((version & 0x0fU) | 0x80U);
    return to_string(id);
}

} // namespace

std::shared_ptr<Engine> Engine::make(Config config)
{
    config.validate();
    requireOwnHiredis();
    return makeWithDescriptors("a client of " + serverText(config),
                               [&] { return std::shared_ptr<Engine>(new Engine(std::move(config))); });
}

Engine::Engine(Config config)
    : config_(std::move(config)), generation_(forkGeneration()), core_(*this, config_, freshId(), freshSeed())
{
    Node::Listener listener;
    listener.report = [this](const char* purpose, bool up, Reason error) {
        if (!config_.observer) {
            return;
        }
        try {
            tell([purpose, up, error, why = up ? std::string() : lastErrors().sentence(error)](Observer& observer) {
                up ? observer.connected(purpose) : observer.disconnected(purpose, error, why);
            });
        } catch (const std::bad_alloc&) { // the connection matters more than to be told of it
            return;
        }
    };
    listener.ended = [this] { background_->renewalTimer.set(BootClock::now()); };
    listener.madeAgain = [this](const SlotSet* where) {
        post([this, where = where != nullptr ? std::make_shared<const SlotSet>(*where) : nullptr] {
            const Inside inside(*this);
            core_.unsettle(where.get());
        });
    };
    listener.warned = [this](std::string what) {
        if (config_.observer) {
            tell([what = std::move(what)](Observer& observer) { observer.warned(what); });
        }
    };
    background_ = std::make_unique<Background>(config_, connectionNameOf(config_, core_.id), listener);
    background_->recovered = [this] { recover(); };
    background_->renewalTimer.onRing([this] {
        // a call whose answer has come is not over, though this thread looks late
        route().forEach([](Node& node) { node.renewals.catchUp(); });
        bool lasts = false;
        {
            const Inside inside(*this);
            core_.ring();
            lasts = core_.renewing.lasts() && !core_.isClosing();
        }
        if (route().keep(lasts)) { // the server may have ended unnoticed
            const Inside inside(*this);
            core_.renewing.unsettle(now(), false);
        }
        sendOutbox();
    });
}

Engine::~Engine()
{
    if (isForked()) {
        // sockets, epoll and the thread belong to the parent: touching them here would disturb it
        (void)background_.release();
    }
    held_.emplace();
}

void Engine::recover()
{
    {
        const Lock lock(mutex_);
        core_.recover();
    }
    route().forEach([](Node& node) { node.sweepSoon(); });
    sendOutbox();
}

std::shared_ptr<NamedLock> Engine::named(const KindTraits& kind, std::string name)
{
    return NamedLock::of(shared_from_this(), core_, kind, std::move(name));
}

std::shared_ptr<NamedCounter> Engine::counter(CounterKind kind, std::string name)
{
    return NamedCounter::of(shared_from_this(), core_, kind, std::move(name));
}

bool Engine::shutdown(std::chrono::milliseconds timeout) noexcept
{
    if (isForked()) {
        return true;
    }
    const Uncancelled held;
    const TimePoint until = saturatingAdd(BootClock::now(), timeout);
    try {
        if (!beginEnd()) {
            background_->join(BootClock::now()); // the end began elsewhere: only the thread may still have to be joined
            return true;
        }
    } catch (const std::bad_alloc&) { // the leases end the holds
        closing_ = true;
    }
    bool answered = true;
    {
        Lock lock(mutex_);
        ShutdownFlow flow(core_, background_->isOwnThread() ? TimePoint{} : until, nullptr);
        drive(*this, lock, flow);
        answered = flow.isAnswered();
    }
    endConnections();
    background_->join(until);
    return answered;
}

bool Engine::beginEnd()
{
    std::vector<std::shared_ptr<NamedLock>> names; // destroyed after the mutex is unlocked
    {
        const Lock lock(mutex_);
        if (closing_) {
            return false;
        }
        names = core_.close();
        closing_ = true;
    }
    flush(); // writes the requests of the holds that were given back
    return true;
}

void Engine::endConnections() noexcept
{
    route().shutdown(Errc::shutdown);
    background_->end([this] {
        {
            const Lock lock(mutex_);
            outboxClosed_ = true;
            core_.endRuns();
        }
        sendOutbox();
    });
}

// --- What calls are made of ------------------------------------------------------------------------------------------

std::optional<Reason> Engine::asyncRefusal()
{
    if (isForked()) {
        return Errc::forked;
    }
    return closing_ ? Errc::shutdown : background_->start(shared_from_this());
}

std::optional<Reason> Engine::refusal()
{
    const auto refused = asyncRefusal();
    return refused || !background_->isOwnThread() ? refused : Cause::clientsThread;
}

bool Engine::tryPost(std::function<void()> what)
{
    const Lock lock(mutex_); // `closing_` is set under the mutex: what was posted before is still done
    if (!closing_) {
        post(std::move(what));
    }
    return !closing_;
}

std::function<void()> Engine::doAt(TimePoint when, std::function<void()> what)
{
    const auto refused = asyncRefusal();
    const Lock lock(mutex_); // as in tryPost()
    if (refused || closing_) {
        return nullptr;
    }
    const std::weak_ptr weak = background_->later(when, std::move(what));
    return patiently([&] {
        return std::function<void()>([this, weak] {
            post([weak] {
                if (const auto due = weak.lock()) {
                    due->what = nullptr;
                    due->timer.cancel();
                }
            });
        });
    });
}

asio::any_completion_executor Engine::handlerExecutor()
{
    if (const auto refused = asyncRefusal(); refused == Reason(Cause::noThread)) {
        return {};
    } else if (!refused) {
        const Lock lock(mutex_); // as in tryPost(): the thread runs until the completion is over
        if (!closing_) {
            return asio::prefer(asio::any_completion_executor(background_->io.get_executor()),
                                asio::execution::outstanding_work.tracked);
        }
    }
    return asio::system_executor();
}

} // namespace redislock::detail
