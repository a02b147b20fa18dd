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
    enum class Stage : std::uint8_t {
        idle,
        asking,
        behindReleases, ///< refused perhaps only because of what this client gives back just now
        sleeping,
        done,
    };
    using Event = AcquireMachine::Event;

    void step(const Event& event);
    void send();
    void answered();
    void judgeReleases();
    void sleepUntil(TimePoint until, bool subscribes);
    void judge();
    void judgeAsking();
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
    std::optional<Event> refusal_; ///< of the request that is repeated behind releases
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
    const auto giving = request.afterwards ? std::make_shared<Giving>(shared_from_this()) : nullptr;
    engine->asyncQuery<Result>(
        call, std::move(handler),
        [self = shared_from_this(), request = std::move(request), begin = BootClock::now(),
         giving](const auto& asked, std::error_code ec, const QueryMachine& machine, const Reply&) {
            auto result = ec ? request.known : request.meaning(*request.call, machine.repeated(), ec);
            ec = self->conclude(request, begin, machine.repeated(), ec);
            Undo undo;
            if (request.untold && !ec) {
                undo = Undo([untold = request.untold, result] { untold(result); });
            }
            asked->completion(codeOf(ec), std::move(result), std::move(undo));
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
        End end = [completion, make = std::move(make), untold = order.untold](boost::system::error_code ec,
                                                                              const CounterOutcome& outcome) {
            (*completion)(ec, make(outcome), Undo(outcome.granted ? untold : nullptr));
        };
        const auto operation = std::make_shared<AsyncAttempt>(shared_from_this(), std::move(order), std::move(end));
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
