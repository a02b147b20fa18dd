/// @file
/// The end of an asynchronous call, told to whoever started it.
#pragma once

#include "redislock/handler.hpp"

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/prefer.hpp>

#include <utility>

namespace redislock::detail {

/// A handler that is to be called once, on its own executor, which is kept busy until then.
template <class Result>
class Completion {
public:
    /// @param fallback for handlers without an executor of their own.
    template <class Executor>
    Completion(Handler<Result> handler, const Executor& fallback)
        : handler_(std::move(handler)),
          executor_(boost::asio::prefer(
              boost::asio::get_associated_executor(handler_, boost::asio::any_completion_executor(fallback)),
              boost::asio::execution::outstanding_work.tracked))
    {
    }

    /// Has @p cancel called, on the thread that emits, when the operation is cancelled. Call it before the operation begins.
    template <class Function>
    void onCancellation(Function cancel)
    {
        slot_ = boost::asio::get_associated_cancellation_slot(handler_);
        if (slot_.is_connected()) {
            slot_.assign([cancel = std::move(cancel)](boost::asio::cancellation_type /*type*/) { cancel(); });
        }
    }

    /// Ends the call: the handler runs soon, not in here.
    void operator()(boost::system::error_code ec, Result result)
    {
        // stays tracked until it was told: the context's run() must not return while this is still in it
        const auto later = boost::asio::prefer(std::exchange(executor_, boost::asio::any_completion_executor()),
                                               boost::asio::execution::blocking.never);
        later.execute([handler = std::move(handler_), slot = slot_, ec, result = std::move(result)]() mutable {
            if (slot.is_connected()) {
                slot.clear();
            }
            std::move(handler)(ec, std::move(result));
        });
    }

private:
    Handler<Result> handler_;
    boost::asio::any_completion_executor executor_;
    boost::asio::cancellation_slot slot_;
};

} // namespace redislock::detail
