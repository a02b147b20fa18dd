/// @file
/// The end of an asynchronous call, as its caller gets it.
#pragma once

#include "client/pending_handlers.hpp"
#include "link/request/patience.hpp"
#include "redislock/error.hpp"
#include "redislock/handler.hpp"
#include "values/system/process.hpp"

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/prefer.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

namespace redislock::detail {

/// Undoes what a call did, unless its caller gets the result.
class Undo {
public:
    Undo() = default;
    explicit Undo(std::function<void()> undo) : undo_(std::move(undo)) {}
    Undo(Undo&& other) noexcept : undo_(std::exchange(other.undo_, nullptr)) {}
    Undo& operator=(Undo&& other) noexcept
    {
        undo_.swap(other.undo_);
        return *this;
    }
    ~Undo()
    {
        if (undo_) {
            undo_();
        }
    }

    void dismiss() noexcept { undo_ = nullptr; }

private:
    std::function<void()> undo_; ///< does not throw
};

/// The code that a handler gets: Asio's own if its call was cancelled.
inline boost::system::error_code handlersCode(std::error_code error, bool cancelled) noexcept
{
    if (!error) {
        return {}; // made from the other, its value would not be 0
    }
    return cancelled ? boost::system::error_code(boost::asio::error::operation_aborted)
                     : boost::system::error_code(error);
}

/// Calls a function whose exceptions nobody is there to catch: they end the process, as in any thread.
template <class Function>
void callUncaught(Function function) noexcept
{
    try {
        function();
    } catch (...) {
        std::terminate(); // whose handler sees the exception here, with all compilers
    }
}

/// A handler that is to be called once, on its own executor, which counts as busy until then. If the executor's context
/// ends before, the context destroys the handler, the call is cancelled, and its result is destroyed.
template <class Result>
class Completion {
public:
    /// @param fallback for handlers without an executor of their own; its context outlives the call, and what such a
    /// handler throws ends the process.
    template <class Executor>
    Completion(Handler<Result> handler, const Executor& fallback)
        : pending_(std::make_shared<Pending>(std::move(handler.function), fallback))
    {
        if (handler.context != nullptr) {
            PendingHandlers::of(*handler.context)->add(pending_);
        }
    }
    Completion(Completion&&) noexcept = default;
    Completion& operator=(Completion&& other) noexcept
    {
        pending_.swap(other.pending_);
        return *this;
    }
    ~Completion()
    {
        if (pending_ != nullptr) {
            if (const Claim claim(*pending_); claim) {
                pending_->destroy();
            }
        }
    }

    /// Makes a cancellation of the operation call @p cancel on the thread that emits it, and the end of the handler's
    /// context call it on the thread that ends the context. Call this before the operation begins.
    template <class Function>
    void onCancellation(Function cancel)
    {
        if (!pending_->handler) {
            return; // the call was begun while its context ended
        }
        pending_->slot = boost::asio::get_associated_cancellation_slot(pending_->handler);
        if (pending_->slot.is_connected()) {
            pending_->slot.assign([cancel](boost::asio::cancellation_type /*type*/) { cancel(); });
        }
        pending_->cancel = std::move(cancel);
    }

    /// Ends the call: the handler runs soon, not in here. If it will not be called, what the call did is undone,
    /// perhaps in here.
    void operator()(boost::system::error_code ec, Result result, Undo undo = {})
    {
        const auto pending = std::move(pending_);
        if (pending == nullptr) {
            return; // ended before
        }
        const Uncancelled held;
        const Claim claim(*pending);
        if (!claim) {
            return;
        }
        const auto delivery = patiently([&] { // takes nothing if it fails
            return std::make_shared<Delivery>(*pending, ec, std::move(result), std::move(undo));
        });
        // tracked until the handler was called: the context's run() must not return before
        const auto executor = std::exchange(pending->executor, nullptr);
        for (int failures = 1;; ++failures) {
            try {
                return boost::asio::prefer(executor, boost::asio::execution::blocking.never)
                    .execute([own = delivery]() mutable { std::exchange(own, nullptr)->tell(); });
            } catch (const std::bad_alloc&) {
                if (delivery->isBegun || !awaitMemory(failures)) {
                    throw;
                }
            }
        }
    }

private:
    struct Pending final : PendingHandler {
        Pending(decltype(Handler<Result>::function) function, const boost::asio::any_completion_executor& fallback)
            : handler(std::move(function)), executor(boost::asio::get_associated_executor(handler, fallback))
        {
            isOnFallback = executor == fallback;
            if (!executor) {
                throw LockError(Cause::noThread, "an asynchronous call whose handler has no executor", {});
            }
            executor = boost::asio::prefer(executor, boost::asio::execution::outstanding_work.tracked);
        }
        void destroy() noexcept override
        {
            handler = nullptr;
            executor = nullptr; // its context counts this as work until here
        }

        decltype(Handler<Result>::function) handler;
        boost::asio::any_completion_executor executor;
        bool isOnFallback = false;
        boost::asio::cancellation_slot slot; ///< lives as long as the handler, or longer
    };

    /// A handler on its way to its executor, which destroys it if it ends before.
    struct Delivery {
        Delivery(Pending& pending, boost::system::error_code e, Result&& r, Undo&& u)
            : handler(std::move(pending.handler)),
              slot(pending.slot),
              ec(e),
              result(std::move(r)),
              undo(std::move(u)),
              isOnFallback(pending.isOnFallback)
        {
        }

        void tell()
        {
            isBegun = true;
            undo.dismiss();
            if (slot.is_connected()) {
                slot.clear();
            }
            Result own = std::move(result);
            const auto call = [&] { std::move(handler)(ec, std::move(own)); };
            isOnFallback ? callUncaught(call) : call();
        }

        decltype(Handler<Result>::function) handler;
        boost::asio::cancellation_slot slot;
        boost::system::error_code ec;
        Result result;
        Undo undo;
        bool isOnFallback;
        bool isBegun = false; ///< some executors run the handler at once: what it throws is its own
    };

    std::shared_ptr<Pending> pending_;
};

} // namespace redislock::detail
