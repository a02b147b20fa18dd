/// @file
/// An asynchronous wait.
#pragma once

#include "client/completion.hpp"
#include "client/engine.hpp"
#include "core/operation/waiting.hpp"
#include "link/request/patience.hpp"

#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

namespace redislock::detail {

/// Drives a flow on the background thread, as drive() does on a calling one. Where the calling thread would sleep, a
/// timer, look() or the answer continues the flow.
///
/// Members are guarded by the engine's mutex.
template <class Flow>
class AsyncWait : public AsyncWaiter, public std::enable_shared_from_this<AsyncWait<Flow>> {
public:
    /// Ends the operation as soon as possible. Any thread. What this posts does not keep the operation, and with it the
    /// client: the background thread may have ended, and would never destroy what was posted.
    void cancel()
    {
        engine_.post([weak = this->weak_from_this()] {
            if (const auto self = weak.lock()) {
                const auto lock = self->engine_.lock();
                self->cancelled_ = true;
                self->step([](Flow& flow) { return flow.cancel(); });
            }
        });
    }

    void look() noexcept override
    {
        if (!std::exchange(looking_, true)) {
            try {
                engine_.post([self = this->shared_from_this()] {
                    const auto lock = self->engine_.lock();
                    self->looking_ = false;
                    self->step([](Flow& flow) { return flow.look(); });
                });
            } catch (...) { // out of memory: it looks when its time is over
                looking_ = false;
            }
        }
    }

    void answered(Call& call) override
    {
        const auto self = this->shared_from_this();
        const auto lock = engine_.lock();
        if (!flow_ || call.mode == Call::Mode::abandoned) {
            return;
        }
        if (!awaits_) { // the answer to a request that another thread queued may come before look()
            step([](Flow& flow) { return flow.look(); });
        }
        if (flow_ && awaits_) {
            timer_.cancel();
            step([&call](Flow& flow) { return flow.answered(call.outcome); });
        }
    }

protected:
    explicit AsyncWait(Engine& engine) : engine_(engine), timer_(engine.background().io) {}

    /// Begins a flow, constructed from these arguments. Background thread. Expects the mutex.
    template <class... Arguments>
    void begin(Arguments&&... arguments)
    {
        self_ = this->shared_from_this();
        try {
            flow_.emplace(std::forward<Arguments>(arguments)..., this);
        } catch (const std::bad_alloc&) {
            return fail();
        }
        step([this](Flow& flow) { return cancelled_ ? flow.cancel() : flow.look(); });
    }

    /// Lets the flow, if it is not over, take a step, and does what it asks for next. Expects the mutex.
    template <class Step>
    void step(Step next)
    {
        try {
            if (flow_) {
                act(next(*flow_));
            }
        } catch (const std::bad_alloc&) {
            fail();
        }
    }

    /// Does what the flow asks for next.
    void act(const WaitStep& next)
    {
        awaits_ = next.kind == WaitStep::Kind::awaitAnswer;
        until_ = next.until;
        switch (next.kind) {
        case WaitStep::Kind::awaitAnswer:
        case WaitStep::Kind::sleep:
            return wakeAt(next.until);
        case WaitStep::Kind::askPolicy:
            return askPolicy(next.refusals);
        case WaitStep::Kind::done:
            timer_.cancel();
            finish();
            self_.reset(); // the caller has another reference to this
        }
    }

    /// Ends the operation for lack of memory.
    void fail()
    {
        flow_.reset();
        timer_.cancel();
        failed();
        self_.reset();
    }

    /// The flow wants its policy to be asked. Called under no mutex.
    virtual void askPolicy(std::uint32_t /*refusals*/) {}
    /// The flow is done: takes its result, and ends it. Observers and handlers are called outside the mutex.
    virtual void finish() = 0;
    /// There was no memory to go on, and the flow has been ended.
    virtual void failed() = 0;

    /// The error that the handler gets: Asio's own code for cancellation, if the operation was cancelled.
    [[nodiscard]] boost::system::error_code codeForHandler(std::error_code error) const noexcept
    {
        return handlersCode(error, cancelled_);
    }

    Engine& engine_;
    std::optional<Flow> flow_; ///< from begin() to the end

private:
    void timeOver()
    {
        if (!awaits_) {
            return step([](Flow& flow) { return flow.look(); });
        }
        if (BootClock::now() < until_) {
            return wakeAt(until_); // the timer of the stage before went off just as that stage ended
        }
        step([this](Flow& flow) {
            return flow.answered({.replied = false, .fault = engine_.background().renewals.overdue(flow.withdraw())});
        });
    }

    void wakeAt(TimePoint when)
    {
        if (when == TimePoint::max()) {
            return;
        }
        timer_.expires_after(when - BootClock::now());
        patiently([this] {
            timer_.async_wait([self = this->shared_from_this()](boost::system::error_code ec) {
                if (ec) {
                    return;
                }
                const auto lock = self->engine_.lock();
                if (self->flow_) {
                    self->timeOver();
                }
            });
        });
    }

    std::shared_ptr<AsyncWait> self_; ///< from begin() to the end
    boost::asio::steady_timer timer_;
    TimePoint until_{};   ///< when the flow goes on if nothing happens
    bool awaits_ = false; ///< the flow waits for an answer
    bool cancelled_ = false;
    bool looking_ = false;
};

} // namespace redislock::detail
