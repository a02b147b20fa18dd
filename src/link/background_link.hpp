/// @file
/// Calls on a connection of the background thread.
#pragma once

#include "link/call_link.hpp"
#include "link/request/call.hpp"
#include "link/thread_link.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

namespace redislock::detail {

/// Detached calls, pipelined on a connection of the client's thread: renewals, and asynchronous calls. While that
/// cannot be made, they go over the command connection, if that is there. They keep their order: while one is lent and
/// unanswered, those behind it are lent too; only renewals need none.
///
/// **Thread safety**: none; everything on the io_context's thread, finished() of the calls too.
class BackgroundLink final : private CallLink {
public:
    using CallLink::CallLink;

    /// What carries calls while no connection can be made. Before the first call. @param ring any thread: leads to
    /// takeBack()
    void lendTo(ThreadLink& other, std::function<void()> ring);
    /// Ends the lent calls that the other connection has answered.
    void takeBack();
    /// Gives the connection to the other one, which cannot be made, and lends it calls from now on. @return none if
    /// there is none, or if it is in use, with a fault
    Connected give();

    /// Keeps a connection, or no longer, though nothing is queued for it.
    void keep(bool on);
    [[nodiscard]] bool isKept() const noexcept { return isKept_; }
    /// Queues a call. Follow with flush().
    void enqueue(std::shared_ptr<Call> call);
    /// Takes out a call that waits for the connection. @return false if the call may have been sent.
    bool withdraw(Call& call) { return link_.withdraw(call); }
    /// Sends what is queued, or connects first.
    void flush();
    [[nodiscard]] bool isConnected() const noexcept { return link_.isOpen(); }
    /// How a call whose time is over ends. @param sent whether the call may have been sent
    [[nodiscard]] Fault overdue(bool sent) const noexcept { return link_.overdue(sent); }
    using CallLink::handOn;
    using CallLink::owesSince;
    using LoopLink::catchUp;
    using LoopLink::cut;
    using LoopLink::leave;
    using LoopLink::recover;
    /// Ends the connection and the calls on it.
    void close();

private:
    struct Lent;

    void whenOpened() override;
    void whenFailed() noexcept override;
    void lend(std::shared_ptr<Call> call);
    void giveBack(const Lent& lent, Outcome outcome);

    ThreadLink* other_ = nullptr;
    std::function<void()> ring_;
    std::deque<std::shared_ptr<Lent>> lent_;
    bool isKept_ = false;
    bool isAbsent_ = false; ///< the last attempt to connect has failed
    bool hurried_ = false;  ///< a call queued since the last flush is hurried
};

} // namespace redislock::detail
