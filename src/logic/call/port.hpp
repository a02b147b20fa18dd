/// @file
/// What the logic asks of whoever runs it.
#pragma once

#include "logic/call/call.hpp"
#include "logic/call/channel_listener.hpp"
#include "redislock/clock.hpp"
#include "redislock/error.hpp"
#include "redislock/identity.hpp"
#include "redislock/observer.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace redislock::detail {

/// Which connection carries a request.
enum class Lane : std::uint8_t {
    commands,   ///< that of the calling threads
    background, ///< that of the client's own thread: asynchronous operations, and renewals
};

/// The outside of the logic: connections, time, threads. The logic's functions are called one at a time, under the
/// mutex of the implementation, but for those that take it themselves; what they ask for here is only queued: nothing
/// here waits, calls back or runs a user's code. What they have queued for a connection is written when they have
/// returned and the mutex is free.
class Port {
public:
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;

    /// The mutex under which the logic's functions are called; see Inside.
    virtual void enter() noexcept = 0;
    virtual void exit() noexcept = 0;

    [[nodiscard]] virtual TimePoint now() const noexcept = 0;
    /// Whether this is a child of the process that made the client: nothing of it may be touched.
    [[nodiscard]] virtual bool isForked() const noexcept = 0;
    /// Never the same twice in a process.
    virtual HolderId nextHolder() noexcept = 0;
    /// Likewise, of a request whose answer is kept. Any thread.
    virtual std::uint64_t nextRequest() noexcept = 0;

    // requests
    /// Queues a request, and perhaps another right behind it. @return false after the client's end.
    virtual bool submit(Lane lane, std::shared_ptr<Call> call, std::shared_ptr<Call> behind = nullptr) = 0;
    /// Queues requests on whichever lane has a connection now; lets go of them if none has.
    virtual void submitIfConnected(std::vector<std::shared_ptr<Call>> calls) = 0;
    /// Takes back a request of the background lane that was not sent yet. @return whether it could.
    virtual bool withdraw(Call& call) = 0;
    /// The thread that would have waited for a request of the other lane leaves. @return whether that takes the request
    /// back: it is still queued, and was not sent.
    virtual bool leave(Call& call) noexcept = 0;
    /// Ends such a request if it still waits for a connection: its thread is told.
    virtual void fail(const std::shared_ptr<Call>& call, Errc why) = 0;

    // what is published
    virtual void want(std::string channel, ChannelListener listener) = 0;
    virtual void drop(std::string channel, ChannelListener listener) = 0;

    // others
    /// The thread that sleeps on a call looks again.
    virtual void wake(Call& call) noexcept = 0;
    /// Has Renewing::ring() called then, instead of when it was asked for before.
    virtual void alarm(TimePoint when) noexcept = 0;
    /// Has something done then, as one of the logic's functions; before, when the client ends.
    virtual void after(TimePoint when, std::function<void()> what) = 0;
    /// Has something done soon, outside the logic.
    virtual void post(std::function<void()> what) = 0;
    /// Has the observer told, if there is one.
    virtual void tell(std::function<void(Observer&)> what) = 0;
    /// What the client's end waits for may be over.
    virtual void ended() noexcept = 0;

protected:
    Port() = default;
    ~Port() = default;
};

/// Has the mutex, for a function that is called without it. Its end writes what was queued meanwhile.
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
