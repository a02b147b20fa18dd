/// @file
/// A question to Redis that no thread waits for.
#pragma once

#include "redislock/detail/logic/query_machine.hpp"
#include "runtime/completion.hpp"
#include "runtime/engine.hpp"
#include "runtime/event_of.hpp"
#include "runtime/name_call.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace redislock::detail {

/// Drives a QueryMachine on the background thread, as Engine::query() does on a calling one. All its functions run there.
class Engine::AsyncQuery final : public std::enable_shared_from_this<AsyncQuery> {
public:
    /// Called once; with what was found out, or the error.
    using End = std::function<void(std::error_code, const QueryMachine&, const Reply&)>;

    AsyncQuery(Engine& engine, std::shared_ptr<NameCall> call, End end)
        : engine_(engine),
          call_(std::move(call)),
          end_(std::move(end)),
          machine_(engine.config_.unreachableAfter),
          timer_(engine.background_->io)
    {
    }

    void begin()
    {
        call_->mode = Call::Mode::detached;
        call_->whenFinished = [weak = weak_from_this()] {
            if (const auto self = weak.lock()) {
                self->answered();
            }
        };
        step(Start{BootClock::now()});
    }

    void cancel() { finish(std::make_error_code(std::errc::operation_canceled)); }

private:
    void step(const QueryMachine::Event& event)
    {
        const auto action = machine_.resume(event, engine_.background_->random);
        if (const auto* done = std::get_if<Done<std::optional<Errc>>>(&action)) {
            return finish(done->result ? std::error_code(*done->result) : std::error_code());
        }
        if (const auto* send = std::get_if<Send>(&action)) {
            wakeAt(send->until);
            engine_.background_->renewals.enqueue(call_);
            return engine_.background_->renewals.flush();
        }
        wakeAt(std::get<SleepUntil>(action).until);
    }

    void answered()
    {
        if (end_ != nullptr) {
            timer_.cancel();
            step(eventOf<QueryMachine::Event, Answered>(*call_, call_->outcome, BootClock::now()));
        }
    }

    void timeOver()
    {
        if (machine_.state() != QueryMachine::State::asking) {
            return step(TimerFired{BootClock::now()});
        }
        const bool sent = call_->pending && !engine_.background_->renewals.withdraw(*call_);
        call_->whenFinished = nullptr;
        step(Failed{BootClock::now(), {sent ? Failure::lostReply : Failure::notConnected, Errc::unreachable}});
    }

    void wakeAt(TimePoint when)
    {
        timer_.expires_after(when - BootClock::now());
        timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
            if (!ec && self->end_ != nullptr) {
                self->timeOver();
            }
        });
    }

    void finish(std::error_code ec)
    {
        timer_.cancel();
        if (call_->pending) {
            (void)engine_.background_->renewals.withdraw(*call_);
        }
        if (const auto end = std::exchange(end_, nullptr)) {
            end(ec, machine_, call_->reply);
        }
    }

    Engine& engine_;
    std::shared_ptr<NameCall> call_;
    End end_;
    QueryMachine machine_;
    boost::asio::steady_timer timer_;
};

} // namespace redislock::detail
