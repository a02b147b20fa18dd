/// @file
/// Questions and waits about counters that no thread waits for.
#pragma once

#include "runtime/async_query.hpp"
#include "runtime/counter_attempt.hpp"

#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace redislock::detail {

/// Drives an AcquireMachine on the background thread, as NamedCounter::acquire() does on a calling one: what is a sleep there is
/// a stage here, which a timer, look() or the answer ends. All its functions run there, except look().
class NamedCounter::AsyncAttempt final : public CounterOperation, public std::enable_shared_from_this<AsyncAttempt> {
public:
    AsyncAttempt(std::shared_ptr<NamedCounter> counter, CounterOrder order, End end);

    void begin();
    void cancel();
    void look() noexcept override;

private:
    enum class Stage : std::uint8_t { idle, asking, sleeping, done };
    using Event = AcquireMachine::Event;

    void step(const Event& event);
    void send(TimePoint until);
    void answered();
    void sleepUntil(TimePoint until, bool subscribes);
    void judge();
    void timeOver();
    void wakeAt(TimePoint when);
    bool withdraw();
    void finish(const AcquireResult& result);

    Attempt attempt_;
    End end_;
    Engine& engine_;
    boost::asio::steady_timer timer_;
    std::shared_ptr<ScriptCall> call_;
    std::optional<Underway> underway_;
    TimePoint until_{};
    Stage stage_ = Stage::idle;
    bool cancelled_ = false;
    bool looking_ = false; ///< guarded by the engine's mutex
};

template <class Result>
void NamedCounter::asyncAsk(CounterRequest<Result> request, Handler<Result> handler)
{
    if (request.call == nullptr) {
        const auto ec = request.refused ? std::error_code(*request.refused) : std::error_code();
        return engine->completionOf(std::move(handler))(ec, std::move(request.known));
    }
    const auto call = request.call;
    engine->asyncQuery<Result>(call, std::move(handler),
                               [self = shared_from_this(), request = std::move(request), begin = BootClock::now()](
                                   const auto& asked, std::error_code ec, const QueryMachine& machine, const Reply&) {
                                   if (request.afterwards && isOpen(ec)) {
                                       self->repeatUnawaited(request.afterwards, begin);
                                   }
                                   if (ec) {
                                       return asked->completion(codeOf(ec), request.known);
                                   }
                                   if (!machine.repeated()) {
                                       const Lock lock(self->engine->mutex_);
                                       self->settle(request.record);
                                   }
                                   auto result = request.meaning(*request.call, machine.repeated(), ec);
                                   asked->completion(codeOf(ec), std::move(result));
                               });
}

template <class Result>
void NamedCounter::asyncAcquire(CounterOrder order, Handler<Result> handler,
                                std::function<Result(const CounterOutcome&)> make)
{
    const auto completion = std::make_shared<Completion<Result>>(engine->completionOf(std::move(handler)));
    auto refused =
        order.script == nullptr ? std::optional(Errc::invalidArgument) : whyNot(isForked(), engine->closing_);
    if (!refused) {
        const auto operation = std::make_shared<AsyncAttempt>(
            shared_from_this(), std::move(order),
            [completion, make = std::move(make)](boost::system::error_code ec, const CounterOutcome& outcome) {
                (*completion)(ec, make(outcome));
            });
        completion->onCancellation([weak = std::weak_ptr(operation), client = std::weak_ptr(engine)] {
            const auto self = weak.lock(); // the slot may outlive everything
            const auto alive = client.lock();
            if (self && alive) {
                alive->post([self] { self->cancel(); });
            }
        });
        const Lock lock(engine->mutex_);
        if (!engine->closing_) {
            return engine->post([operation] { operation->begin(); });
        }
        refused = Errc::shutdown;
    }
    (*completion)(std::error_code(*refused), Result());
}

} // namespace redislock::detail
