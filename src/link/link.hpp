/// @file
/// The protocol of a connection for requests.
#pragma once

#include "link/protocol.hpp"
#include "link/reply_queue.hpp"
#include "link/request/call.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace redislock::detail {

/// Requests and their replies, in order. Requests that wait are encoded one behind the other, so that they are written
/// at once. A script that the server does not know is sent once more by its text. A server that is no master any more
/// is sent nothing, and left when all is answered. A server that sends nothing for a time though an answer is due is
/// silent: the connection ends with all that is written. What is not written waits for the next connection, where it
/// is encoded again if its caller still wants it.
///
/// In a cluster, a call that the node answers with a redirection ends as `moved`, with the answer as its reply: the
/// node did nothing, and whoever made the call asks another one.
class Link final : public Protocol {
public:
    /// Whether a call is meant for another node now.
    using IsElsewhere = std::function<bool(const Call&)>;

    /// @param timeout how long a server may be silent. @param isInCluster redirections are no errors
    Link(std::chrono::nanoseconds timeout, std::uint64_t seed, bool isInCluster = false) noexcept
        : Protocol(seed), timeout_(timeout), isInCluster_(isInCluster)
    {
    }

    /// Queues a request, and perhaps another right behind it. @return false after close(): a waiting caller is told,
    /// but not finished() of a detached call.
    bool enqueue(std::shared_ptr<Call> call, std::shared_ptr<Call> behind, TimePoint now, FinishedCalls& finished);
    /// Takes back a call that was not sent. @return false if it may have been sent.
    [[nodiscard]] bool withdraw(Call& call) noexcept;
    /// The caller stops waiting: takes the call back, or drops its reply. @return how the call ends for the caller
    Fault giveUp(Call& call) noexcept;
    /// Ends a call with an error if it can be taken back.
    void fail(const std::shared_ptr<Call>& call, Errc why, FinishedCalls& finished) noexcept;
    /// How a call ends whose time is over. @param sent whether it may have been sent
    [[nodiscard]] Fault overdue(bool sent) const noexcept
    {
        return sent ? Fault{Failure::lostReply, Cause::silent} : Fault{Failure::notConnected, absence()};
    }
    /// Ends a call that is in no queue any more.
    static void finish(std::shared_ptr<Call> call, Outcome outcome, FinishedCalls& finished) noexcept;
    /// Another node may have what was asked for here: calls that wait for a connection, and are meant for another node,
    /// end as `moved`. Where there is a connection, all that is not written does when it ends.
    void handOn(const IsElsewhere& isElsewhere, FinishedCalls& finished);
    /// A connection is wanted, or no longer, though no request waits for it.
    void want(bool on) noexcept { isWanted_ = on; }

    [[nodiscard]] const ReplyQueue<Call>& queue() const noexcept { return queue_; }
    /// Takes the first call that waits for a connection; null: none.
    [[nodiscard]] std::shared_ptr<Call> takeFirst() noexcept;
    [[nodiscard]] bool isIdle() const noexcept override { return queue_.unanswered() == 0; }
    void heard(TimePoint now) noexcept override { heardAt_ = now; }
    [[nodiscard]] TimePoint dueAt() const noexcept override
    {
        const auto time = timeout_ + (isIdle() ? std::chrono::milliseconds(0) : queue_[0]->serverWaits);
        return saturatingAdd(std::max(queue_.oldestSent(), heardAt_), time);
    }
    [[nodiscard]] bool timeIsOver(TimePoint now) override { return now >= dueAt(); }
    [[nodiscard]] const Call* awaited() const noexcept override { return isIdle() ? nullptr : queue_[0].get(); }
    [[nodiscard]] Heard received(Reply& reply, TimePoint now, FinishedCalls& finished) override;

private:
    [[nodiscard]] bool isNeeded() const noexcept override { return !queue_.empty() || isWanted_; }
    [[nodiscard]] bool owes() const noexcept override { return !isIdle(); }
    void begin(TimePoint now, FinishedCalls& finished) override;
    void written(TimePoint now) noexcept override { queue_.written(now); }
    void end(Fault fault, bool onlyWritten, FinishedCalls& finished) noexcept override;

    void encode(Call& call, Call* behind = nullptr);
    void sendWhole(std::shared_ptr<Call> call, FinishedCalls& finished) noexcept;

    const std::chrono::nanoseconds timeout_;
    const bool isInCluster_;
    ReplyQueue<Call> queue_;
    TimePoint heardAt_{}; ///< the last bytes of the server
    bool isWanted_ = false;
    bool handsOn_ = false; ///< when the connection ends
};

} // namespace redislock::detail
