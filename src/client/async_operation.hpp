/// @file
/// An operation for whose end a handler waits.
#pragma once

#include "client/completion.hpp"
#include "client/engine.hpp"
#include "core/operation/background_run.hpp"

#include <boost/system/errc.hpp>

#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace redislock::detail {

/// Runs an operation in the background, and tells a handler how it ended.
/// @tparam Make called under the mutex with the empty place for the operation, and the run. @tparam Conclude called
/// under the mutex with the operation, which it may destroy, and whether it was cancelled; what it returns is called
/// with the completion, later, on the background thread and without the mutex.
template <class Flow, class Result, class Make, class Conclude>
class AsyncOperation final : public BackgroundRun,
                             public std::enable_shared_from_this<AsyncOperation<Flow, Result, Make, Conclude>> {
public:
    AsyncOperation(Engine& engine, Completion<Result> completion, Make make, Conclude conclude)
        : BackgroundRun(engine.ownCore()),
          engine_(engine.shared_from_this()),
          completion_(std::move(completion)),
          make_(std::move(make)),
          conclude_(std::move(conclude))
    {
    }

    std::shared_ptr<BackgroundRun> keep() override { return this->shared_from_this(); }

    /// Makes the handler's cancellation slot end the operation. Called before it begins.
    void listenToCancellation()
    {
        completion_.onCancellation([weak = this->weak_from_this()] {
            if (const auto self = weak.lock()) { // the slot may outlive the operation
                self->cancel();
            }
        });
    }
    /// Called instead of start(), if the operation cannot begin.
    Completion<Result> takeCompletion() { return std::move(completion_); }
    /// Expects the mutex.
    void start()
    {
        self_ = this->shared_from_this();
        try {
            make_(flow_, static_cast<BackgroundRun*>(this));
        } catch (const std::bad_alloc&) {
            fail();
        }
        begin();
    }
    /// Background thread, without the mutex.
    void startLater()
    {
        const auto lock = engine_->lock();
        start();
    }

private:
    using Tell = std::invoke_result_t<Conclude, std::optional<Flow>&, bool>;

    Operation* operation() noexcept override { return flow_ ? &*flow_ : nullptr; }
    Rest finish() override
    {
        tell_.emplace(conclude_(flow_, cancelled_));
        flow_.reset();
        return end();
    }
    Rest failed() noexcept override
    {
        flow_.reset();
        return end();
    }

    /// The handler is called soon, without the mutex. The client's end waits until what the operation leaves to be done
    /// is done, or counts itself.
    Rest end() noexcept
    {
        try {
            engine_->post([self = self_] {
                self->tell();
                const Inside inside(self->core_.port);
                self->core_.ends();
            });
            core_.begins();
        } catch (const std::bad_alloc&) { // the handler is destroyed with this
        }
        return {.self = std::move(self_)};
    }
    void tell()
    {
        try {
            if (tell_) {
                return (*tell_)(completion_);
            }
        } catch (const std::bad_alloc&) { // the handler is told of that
        }
        completion_(boost::system::errc::make_error_code(boost::system::errc::not_enough_memory), Result());
    }

    const std::shared_ptr<Engine> engine_;
    Completion<Result> completion_;
    Make make_;
    Conclude conclude_;
    std::optional<Flow> flow_;
    std::optional<Tell> tell_;
    std::shared_ptr<AsyncOperation> self_; ///< from start() to the end
};

/// A completion on the handler's executor; without one, on the background thread, as long as that runs.
template <class Result>
Completion<Result> completionOf(Engine& engine, Handler<Result> handler)
{
    return {std::move(handler), engine.handlerExecutor()};
}

/// @tparam Flow the operation. The rest as for AsyncOperation.
template <class Flow, class Result, class Make, class Conclude>
auto asyncOperation(Engine& engine, Completion<Result> completion, Make make, Conclude conclude)
{
    return std::make_shared<AsyncOperation<Flow, Result, Make, Conclude>>(engine, std::move(completion),
                                                                          std::move(make), std::move(conclude));
}

/// Begins an operation soon, on the background thread; the client's end ends it too. Any thread. The handler is called
/// once, however the operation ends. @param refused why it cannot begin
template <class Flow, class Result, class Make, class Conclude>
void launch(Engine& engine, std::optional<Reason> refused, Handler<Result> handler, Make make, Conclude conclude)
{
    auto completion = completionOf(engine, std::move(handler));
    refused = refused ? refused : engine.asyncRefusal();
    if (!refused) {
        const auto operation =
            asyncOperation<Flow>(engine, std::move(completion), std::move(make), std::move(conclude));
        operation->listenToCancellation();
        if (engine.tryPost([operation] { operation->startLater(); })) {
            return;
        }
        refused = Errc::shutdown;
        completion = operation->takeCompletion();
    }
    completion(std::error_code(*refused), Result());
}

} // namespace redislock::detail
