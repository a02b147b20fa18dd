/// @file
/// What the core asks of the code that runs it.
#pragma once

#include "link/request/call.hpp"
#include "link/request/channels.hpp"
#include "link/request/event.hpp"
#include "link/request/patience.hpp"
#include "redislock/clock.hpp"
#include "redislock/error.hpp"
#include "redislock/identity.hpp"
#include "redislock/observer.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace redislock::detail {

/// Which connection carries a request.
enum class Lane : std::uint8_t {
    commands,   ///< the connection of the calling threads
    background, ///< the connection of the client's own thread: asynchronous operations, and renewals
    confirming, ///< the connection that waits for replicas: two requests each time
};

/// The world outside the core: connections, time, threads. The core's functions are called one at a time, under the
/// mutex of the implementation, except for those that take it themselves. What they ask for here is only queued:
/// nothing here waits, calls back or runs a user's code. Requests that they queue for a connection are written when
/// they have returned and the mutex is free.
class Port {
public:
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;

    /// The mutex under which the core's functions are called; see Inside.
    virtual void enter() noexcept = 0;
    virtual void exit() noexcept = 0;

    [[nodiscard]] virtual TimePoint now() const noexcept = 0;
    /// Whether this process was forked from the one that made the client: nothing of the client may be touched then.
    [[nodiscard]] virtual bool isForked() const noexcept = 0;
    /// A number for a holder, never the same twice in a process.
    virtual HolderId nextHolder() noexcept = 0;
    /// A number for a request whose answer is kept, never the same twice either. Any thread.
    virtual std::uint64_t nextRequest() noexcept = 0;

    // requests
    /// Queues a request, and perhaps another right behind it. @return false after the client's end.
    virtual bool submit(Lane lane, std::shared_ptr<Call> call, std::shared_ptr<Call> behind = nullptr) = 0;
    /// Queues requests on whichever lane has a connection now; drops them if none has.
    virtual void submitIfConnected(std::vector<std::shared_ptr<Call>> calls) = 0;
    /// Takes back a request of the background lane that was not sent yet. @return whether it could.
    virtual bool withdraw(Call& call) = 0;
    /// Stops waiting for a request: takes it back, or drops its answer. @return how it ends for its caller
    virtual Fault giveUp(Lane lane, Call& call) noexcept = 0;
    /// Notes a reply that its request cannot have, for messages.
    virtual void unfit(const Reply& /*reply*/) noexcept {}
    /// Ends such a request with an error if it still waits for a connection, and wakes its thread.
    virtual void fail(const std::shared_ptr<Call>& call, Errc why) = 0;

    // what is published
    virtual void want(std::string channel, ChannelListener listener) = 0;
    virtual void drop(std::string channel, ChannelListener listener) = 0;

    // others
    /// Makes the thread that sleeps on the signal of a call look again.
    virtual void wake(Call& call) noexcept = 0;
    /// Calls Core::ring() at that time, instead of at the time asked for before.
    virtual void alarm(TimePoint when) noexcept = 0;
    /// Calls @p what at that time, as one of the core's functions; earlier if the client ends.
    virtual void after(TimePoint when, std::function<void()> what) = 0;
    template <class What>
    void after(TimePoint when, What what)
    {
        after(when, patiently([&] { return std::function<void()>(std::move(what)); }));
    }
    /// Calls @p what soon, outside the core.
    virtual void post(std::function<void()> what) = 0;
    template <class What>
    void post(What what)
    {
        post(patiently([&] { return std::function<void()>(std::move(what)); }));
    }
    /// Calls @p what with the observer, if there is one.
    virtual void tell(std::function<void(Observer&)> what) = 0;

protected:
    Port() = default;
    ~Port() = default;
};

/// Notes the reply if the code says that it does not fit its request; an error reply has been noted when it came.
inline void noteUnfit(Port& port, const std::error_code& ec, const Reply& reply) noexcept
{
    if (ec == Errc::badReply && !reply.isError()) {
        port.unfit(reply);
    }
}
/// The same for what the reply means to a machine.
template <class Event>
Event noting(Port& port, Event event, const Reply& reply) noexcept
{
    if (const auto* failed = std::get_if<Failed>(&event)) {
        noteUnfit(port, failed->fault.error, reply);
    }
    return event;
}

/// Holds the mutex, for a function that is called without it. The destructor has written what was queued meanwhile.
class Inside {
public:
    explicit Inside(Port& port) noexcept : port_(port) { port_.enter(); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() { port_.exit(); }

private:
    Port& port_;
};

} // namespace redislock::detail
