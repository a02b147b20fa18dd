/// @file
/// The connection that calling threads drive themselves.
#pragma once

#include "logic/call/call.hpp"
#include "protocol/codec.hpp"
#include "redislock/clock.hpp"
#include "redislock/detail/logic/reconnect_policy.hpp"
#include "redislock/detail/logic/reply_queue.hpp"
#include "redislock/random.hpp"
#include "transport/adaptive_mutex.hpp"
#include "transport/connect/stream.hpp"
#include "transport/finished_calls.hpp"
#include "transport/standstill.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace redislock::detail {

/// One connection shared by all threads of a client, without a thread of its own (leader/follower, Schmidt et al. 2000;
/// flat combining, Hendler et al. 2010). The first caller leads: it writes everything queued in one go, reads replies
/// for everybody and hands leadership on when its own reply came. While it waits, a caller who finds that enough is
/// queued writes it.
///
/// Invariants: bytes that are queued wait for no leader that sleeps, if their caller does not: flush() writes them; the
/// others a waiting caller, or the sweep, is woken for; a slot outlives its caller; only the leader closes the socket.
///
/// **Thread safety**: safe. Its mutex is held for queue work only, never over I/O that waits, nor over finished().
class BlockingConnection {
public:
    /// What it needs from the thread behind it. May be called under the connection's mutex; must only post.
    struct Background {
        std::function<void(TimePoint notBefore)> connect; ///< leads to connected() or connectFailed()
        std::function<void(TimePoint soonest)> hurry;     ///< has the attempt that was asked for last begin then
        std::function<void(std::string address)> demoted; ///< the server there takes no writes
        std::function<void()> sweepSoon;                  ///< leads to sweep(), about 2 ms later
        std::function<void(bool up, Errc)> report;        ///< for the observer
    };

    BlockingConnection(Background background, std::chrono::milliseconds timeout, std::uint64_t seed);
    BlockingConnection(const BlockingConnection&) = delete;
    BlockingConnection& operator=(const BlockingConnection&) = delete;

    /// Queues a request, and perhaps another right behind it. Does not write: follow with await() or flush().
    /// @return false after shutdown(): who waits is told, finished() of a detached call is not called.
    bool enqueue(std::shared_ptr<Call> call, std::shared_ptr<Call> behind = nullptr);

    /// Who leads while nobody does.
    enum class First {
        lead,   ///< the caller
        follow, ///< whoever was queued last: its thread is woken while the server works, and reads its answer itself
    };

    /// Waits for a queued call of mode `awaited`, leading if nobody does. When `until` comes first the call is
    /// abandoned; but if this process stood still meanwhile, only when all was read that had come.
    Outcome await(Call& call, TimePoint until, First first = First::lead);

    /// Instead of await(): nobody waits for the call any more. @return whether it may have been sent.
    bool leave(Call& call);

    /// Ends an awaited call that waits for a connection, if it does. @param why what its caller is told
    void withdraw(const std::shared_ptr<Call>& call, Errc why);

    /// Writes what is queued without waiting, whoever leads, and sees to it that somebody reads the replies.
    void flush();

    /// The background thread's turn: reads what has come if nobody leads. @return whether to sweep again.
    bool sweep();

    /// The background thread's reports.
    void connected(Stream stream);
    void connectFailed(Fault fault);

    /// Ends everything: calls under way and later ones fail with `error`.
    void shutdown(Errc error);

    /// Replies that were due, to be waited for at shutdown.
    [[nodiscard]] bool idle();
    [[nodiscard]] bool isConnected();

private:
    enum class State { disconnected, connecting, connected, closed };
    using Lock = std::unique_lock<AdaptiveMutex>;

    [[nodiscard]] bool mayJudge(const Standstill& standstill, TimePoint now) const noexcept;
    void lead(Lock& lock, const Call& own, TimePoint until, Standstill& standstill);
    enum class Progress { moved, stuck, broken };
    Progress step(Lock& lock, FinishedCalls& finished, TimePoint until);
    Progress readOrBreak(Lock& lock, FinishedCalls& finished, TimePoint until);
    void takeQueued();
    bool send(Lock& lock, Transferred& sent);
    Progress write(Lock& lock);
    void writeForLeader(Lock& lock);
    [[nodiscard]] bool isSilent();
    bool letCrowdQueue(Lock& lock);
    Progress read(Lock& lock, FinishedCalls& finished, TimePoint until = TimePoint{});
    bool dispatch(std::vector<Reply>& replies, std::size_t count, FinishedCalls& finished);
    void finish(std::shared_ptr<Call> call, Outcome outcome, FinishedCalls& finished);
    void abandon(std::size_t count, Fault fault, FinishedCalls& finished);
    [[nodiscard]] FinishedCalls takeSpare() noexcept;
    void keepSpare(FinishedCalls&& empty) noexcept;
    void put(const Call& call);
    void wakeOneWaiter();
    [[nodiscard]] Call* successor() const noexcept;
    void resign();
    bool drop(Call& call);
    void disconnect(Fault fault, FinishedCalls& finished);
    void connectIfNeeded();
    void armSweep();
    void leave();
    [[nodiscard]] bool takesRequests() const noexcept { return state_ == State::connected && !leaving_; }
    [[nodiscard]] bool hasEnded(Progress progress) const noexcept;
    [[nodiscard]] bool isOver(Progress progress, TimePoint now) const noexcept;

    const Background background_;
    const std::chrono::milliseconds timeout_;

    AdaptiveMutex mutex_;
    Random random_;
    ReconnectPolicy policy_;
    State state_ = State::disconnected;
    Errc closedFor_{};
    Errc absence_ = Errc::unreachable; ///< why there is no connection, while there is none
    ReplyQueue<Call> queue_;
    std::string queued_; ///< bytes of the unwritten part of the queue, while connected
    bool led_ = false;
    bool leaving_ =
        false; ///< the server is no master any more: nothing is written, and it is left when all was answered
    bool writes_ = false; ///< somebody is writing `writing_`, and has it
    bool reads_ = false;  ///< the leader may sleep until something comes
    bool sweeping_ = false;
    std::uint32_t withoutYield_ = 0; ///< reads before which the leader lets nobody run
    TimePoint emptyAt_{};            ///< a leader that began to look then found nothing to read
    std::size_t crowd_ = 0;          ///< how many callers the last replies went to: so many may come back at once

    std::vector<FinishedCalls> spares_; ///< empty lists with memory, for those who lead or still tell what they read
    std::string writing_; ///< bytes of the written part of the queue, of which the socket may not have taken all
    std::size_t writtenBytes_ = 0;

    // the leader's alone
    std::shared_ptr<Stream> stream_; ///< null when not connected; shared with who writes
    std::optional<ReplyReader> reader_;
    std::vector<Reply> replies_;
    std::array<char, 16 * 1024> buffer_{};
};

} // namespace redislock::detail
