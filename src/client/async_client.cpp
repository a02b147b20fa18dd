// The asynchronous beginning and end of a client.
#include "client/async_calls.hpp"
#include "client/async_query.hpp"
#include "client/completion.hpp"
#include "client/engine.hpp"
#include "link/request/calls.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace redislock::detail {

namespace {

/// Ends an operation as cancelled when its handler's cancellation slot says so. Called before the operation begins.
template <class Operation>
void cancelWhenToldTo(const std::shared_ptr<Operation>& operation)
{
    operation->completion.onCancellation(
        [client = operation->engine->weak_from_this(), weak = std::weak_ptr(operation)] {
            if (const auto engine = client.lock()) { // the slot may outlive the client
                engine->post([weak] {
                    if (const auto self = weak.lock()) {
                        self->end(boost::asio::error::operation_aborted);
                    }
                });
            }
        });
}

/// A PING over the connection of the asynchronous calls, which makes the connection if there is none. Background
/// thread.
struct AsyncConnect final : std::enable_shared_from_this<AsyncConnect> {
    AsyncConnect(Engine& client, Completion<bool> c)
        : engine(client.shared_from_this()), completion(std::move(c)), timer(client.background().io)
    {
    }

    void begin()
    {
        if (ended) {
            return;
        }
        ping->mode = Call::Mode::detached;
        ping->isHurried = true;
        ping->whenFinished = [weak = weak_from_this()] {
            if (const auto self = weak.lock()) {
                self->answered();
            }
        };
        timer.expires_after(engine->config().connectTimeout + std::chrono::milliseconds(100));
        timer.async_wait([self = shared_from_this()](boost::system::error_code ec) {
            if (!ec) {
                const bool sent = self->ping->pending && !self->engine->background().renewals.withdraw(*self->ping);
                self->end(codeOf(self->engine->background().renewals.overdue(sent).error));
            }
        });
        ask();
    }

    void ask() const
    {
        engine->background().renewals.enqueue(ping);
        engine->background().renewals.flush();
    }

    void answered() { !ended && ping->asksAgain(ping->outcome) ? ask() : end(codeOf(ping->obstacle(ping->outcome))); }

    void end(boost::system::error_code ec)
    {
        if (std::exchange(ended, true)) {
            return;
        }
        timer.cancel();
        if (ping->pending) {
            (void)engine->background().renewals.withdraw(*ping);
        }
        completion(ec, !ec);
    }

    const std::shared_ptr<Engine> engine;
    Completion<bool> completion;
    boost::asio::steady_timer timer;
    const std::shared_ptr<PingCall> ping = std::make_shared<PingCall>();
    bool ended = false;
};

/// Waits until nothing is under way any more, or until its time is over, and ends what is left of the client. On the
/// background thread, which keeps running until begin() is called: after its end, nothing would destroy what is posted.
struct AsyncShutdown final : std::enable_shared_from_this<AsyncShutdown> {
    AsyncShutdown(Engine& client, Completion<bool> c)
        : engine(client.shared_from_this()), completion(std::move(c)), timer(client.background().io)
    {
    }

    void begin(TimePoint until)
    {
        begun = true;
        if (cancelled) {
            return end(*cancelled);
        }
        look();
        if (!ended && until != TimePoint::max()) {
            timer.expires_after(until - BootClock::now());
            timer.async_wait([self = shared_from_this()](boost::system::error_code ec) {
                if (!ec) {
                    self->end({});
                }
            });
        }
    }

    void look()
    {
        if (begun && isAnswered()) {
            end({});
        }
    }

    [[nodiscard]] bool isAnswered() const
    {
        const auto lock = engine->lock();
        return !engine->core(lock).isAnythingUnderWay();
    }

    void end(boost::system::error_code ec)
    {
        if (!begun) {
            cancelled = ec;
            return;
        }
        if (std::exchange(ended, true)) {
            return;
        }
        timer.cancel();
        const bool answered = isAnswered();
        engine->endConnections();
        engine->post([self = shared_from_this(), ec, answered] { self->completion(ec, answered); }); // after that
    }

    const std::shared_ptr<Engine> engine;
    Completion<bool> completion;
    boost::asio::steady_timer timer;
    bool begun = false;
    std::optional<boost::system::error_code> cancelled; ///< if it was cancelled before it began
    bool ended = false;
};

} // namespace

void AsyncCalls::connect(Engine& engine, FlagHandler handler)
{
    auto completion = completionOf(engine, std::move(handler));
    auto refused = engine.asyncRefusal();
    if (!refused) {
        const auto operation = std::make_shared<AsyncConnect>(engine, std::move(completion));
        cancelWhenToldTo(operation);
        if (engine.tryPost([operation] { operation->begin(); })) {
            return;
        }
        refused = Errc::shutdown;
        completion = std::move(operation->completion);
    }
    completion(std::error_code(*refused), false);
}

void AsyncCalls::shutdown(Engine& engine, std::chrono::milliseconds timeout, FlagHandler handler)
{
    const TimePoint until = saturatingAdd(BootClock::now(), timeout);
    auto completion = completionOf(engine, std::move(handler));
    if (engine.isForked()) {
        return completion({}, true);
    }
    const auto operation = std::make_shared<AsyncShutdown>(engine, std::move(completion));
    cancelWhenToldTo(operation);
    if (!engine.beginEnd([operation] { operation->look(); })) {
        return operation->completion({}, true);
    }
    engine.post([operation, until] { operation->begin(until); });
}

} // namespace redislock::detail
