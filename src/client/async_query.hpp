/// @file
/// An asynchronous question to Redis.
#pragma once

#include "client/completion.hpp"
#include "client/engine.hpp"
#include "core/machine/query_machine.hpp"
#include "link/request/calls.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/system/errc.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace redislock::detail {

/// Drives a QueryMachine on the background thread, as ThreadCalls::query() does on a calling one. All its functions are
/// called on the background thread.
class AsyncQuery final : public std::enable_shared_from_this<AsyncQuery> {
public:
    /// Called once, with the answer or the error.
    using End = std::function<void(std::error_code, const QueryMachine&, const Reply&)>;

    AsyncQuery(Engine& engine, std::shared_ptr<ListenedCall> call, End end)
        : engine_(engine),
          call_(std::move(call)),
          end_(std::move(end)),
          machine_(engine.config().unreachableAfter),
          timer_(engine.background().io)
    {
    }

    void begin()
    {
        call_->mode = Call::Mode::detached;
        call_->whenFinished = patiently([this] {
            return std::function<void()>([weak = weak_from_this()] {
                if (const auto self = weak.lock()) {
                    self->answered();
                }
            });
        });
        step(Start{BootClock::now()});
    }

    void cancel() { finish(std::make_error_code(std::errc::operation_canceled)); }

private:
    void step(const QueryMachine::Event& event)
    {
        const auto action = machine_.resume(event, engine_.background().random);
        if (const auto* done = std::get_if<Done<std::optional<Reason>>>(&action)) {
            return finish(done->result ? std::error_code(*done->result) : std::error_code());
        }
        if (const auto* send = std::get_if<Send>(&action)) {
            wakeAt(send->until);
            engine_.background().renewals.enqueue(call_);
            return engine_.background().renewals.flush();
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
        const bool sent = call_->pending && !engine_.background().renewals.withdraw(*call_);
        call_->whenFinished = nullptr;
        step(Failed{BootClock::now(), engine_.background().renewals.overdue(sent)});
    }

    void wakeAt(TimePoint when)
    {
        timer_.expires_after(when - BootClock::now());
        patiently([this] {
            timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
                if (!ec && self->end_ != nullptr) {
                    self->timeOver();
                }
            });
        });
    }

    void finish(std::error_code ec)
    {
        timer_.cancel();
        if (call_->pending) {
            (void)engine_.background().renewals.withdraw(*call_);
        }
        if (const auto end = std::exchange(end_, nullptr)) {
            end(ec, machine_, call_->reply);
        }
    }

    Engine& engine_;
    std::shared_ptr<ListenedCall> call_;
    End end_;
    QueryMachine machine_;
    boost::asio::steady_timer timer_;
};

/// The code of a cancelled call is Asio's own, which Asio's users expect.
inline boost::system::error_code codeOf(std::error_code ec)
{
    // compares with the code, not the condition: Errc::shutdown is equivalent to the condition too
    const bool cancelled = ec == std::make_error_code(std::errc::operation_canceled);
    return handlersCode(ec, cancelled);
}

/// The code of a call for whose answer there was no memory.
inline boost::system::error_code noMemory() noexcept
{
    return boost::system::errc::make_error_code(boost::system::errc::not_enough_memory);
}

/// A completion on the handler's executor; without one, on the background thread, as long as that runs.
template <class Result>
Completion<Result> completionOf(Engine& engine, Handler<Result> handler)
{
    return {std::move(handler), engine.handlerExecutor()};
}

/// A question under way, perhaps the second one of an operation.
template <class Result>
struct Asked {
    explicit Asked(Completion<Result> c) : completion(std::move(c)) {}

    Completion<Result> completion;
    std::weak_ptr<AsyncQuery> query; ///< used on the background thread, once begun
};

/// Begins a question, which the client's end ends too. Any thread.
/// @param meaning called with the Asked, the error, the machine and the reply: completes the Asked.
template <class Result, class Meaning>
void asyncQuery(Engine& engine, std::shared_ptr<ListenedCall> call, Handler<Result> handler, Meaning meaning)
{
    const auto asked = std::make_shared<Asked<Result>>(completionOf(engine, std::move(handler)));
    auto refused = engine.asyncRefusal();
    if (!refused) {
        const auto query =
            std::make_shared<AsyncQuery>(engine, std::move(call),
                                         [asked, meaning, keep = engine.shared_from_this()](
                                             std::error_code ec, const QueryMachine& machine, const Reply& reply) {
                                             try {
                                                 meaning(asked, ec, machine, reply);
                                             } catch (const std::bad_alloc&) {
                                                 asked->completion(noMemory(), Result());
                                             }
                                         });
        asked->query = query;
        asked->completion.onCancellation([client = engine.weak_from_this(), weak = std::weak_ptr(asked)] {
            if (const auto self = client.lock()) { // the slot may outlive the client
                self->post([weak] {
                    const auto current = weak.lock();
                    if (const auto under = current ? current->query.lock() : nullptr) {
                        under->cancel();
                    }
                });
            }
        });
        if (engine.tryPost([query] { query->begin(); })) {
            return;
        }
        refused = Errc::shutdown;
    }
    asked->completion(std::error_code(*refused), Result());
}

} // namespace redislock::detail
