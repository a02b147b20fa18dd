/// @file
/// The connection that calling threads drive themselves.
#pragma once

#include "link/connect/stream.hpp"
#include "link/link.hpp"
#include "link/mutexes.hpp"
#include "link/request/call.hpp"
#include "link/request/finished_calls.hpp"
#include "link/standstill.hpp"
#include "redislock/clock.hpp"
#include "wire/codec.hpp"

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace redislock::detail {

/// One connection shared by all threads of a client, without a thread of its own (leader/follower, Schmidt et al. 2000;
/// flat combining, Hendler et al. 2010). The first caller leads: it writes everything queued in one go, reads replies
/// for everybody, and hands leadership on when its own reply has come. While the leader waits, a caller that finds
/// enough requests queued writes them.
///
/// Invariants: queued bytes whose caller does not wait never wait for another thread: flush() writes them, or sleeps
/// until a send() with them has ended; for other bytes, a waiting caller or the sweep is woken; a slot outlives its
/// caller; only the leader closes the socket.
///
/// **Thread safety**: safe. The mutex is held for queue work only, never over I/O that waits, nor over finished().
class ThreadLink {
public:
    /// What the connection needs from the background thread. May be called under the connection's mutex; must only
    /// post.
    struct Background {
        std::function<void(TimePoint notBefore)> connect; ///< leads to connected() or connectFailed()
        /// leads to replacement(); not called where connected() is told of no time for it
        std::function<void(TimePoint notBefore)> replace = {};
        std::function<void(TimePoint soonest)> hurry;     ///< makes the attempt that was asked for last begin then
        std::function<void(std::string address)> demoted; ///< the server there is no master any more
        std::function<void()> sweepSoon;                  ///< leads to sweep(), about 2 ms later
        /// An error reply of the server, for messages.
        std::function<void(const Reply&, const Call* of)> refused;
        std::function<void(bool up, Reason)> report; ///< for the observer
    };

    ThreadLink(Background background, std::chrono::milliseconds timeout, std::uint64_t seed, ReplyLimits limits = {},
               bool isInCluster = false);
    ThreadLink(const ThreadLink&) = delete;
    ThreadLink& operator=(const ThreadLink&) = delete;

    /// Queues a request, and perhaps another right behind it. Does not write: follow with await() or flush().
    /// @return false after shutdown(): a waiting caller is told, but finished() of a detached call is not called.
    bool enqueue(std::shared_ptr<Call> call, std::shared_ptr<Call> behind = nullptr);

    /// Who leads when nobody does.
    enum class First {
        lead,   ///< the caller
        follow, ///< the caller queued last: its thread is woken while the server works, and reads its answer itself
    };

    /// Waits for a queued call of mode `awaited`, leading if nobody does. When `until` comes first, the call is
    /// abandoned; but if this process stood still meanwhile, only when all that had come has been read. @param stop
    /// when this is stopped first, and the caller woken by the call's signal, the call is left as it is: then use
    /// giveUp().
    Outcome await(Call& call, TimePoint until, First first = First::lead, const std::stop_token& stop = {});

    /// Instead of await(), or after an await() that was called off: nobody waits for the call any more. @return how it
    /// ends for its caller; if it was taken back, it was not connected
    Fault giveUp(Call& call);

    /// Ends an awaited call if it still waits for a connection. @param why what its caller is told
    void withdraw(const std::shared_ptr<Call>& call, Errc why);

    /// Writes what is queued, whoever leads, and makes sure that somebody reads the replies. Does not wait for the
    /// server: what the socket does not take is left to the others.
    void flush();

    /// Called by the background thread: reads what has come if nobody leads. @return whether to sweep again.
    bool sweep();

    /// The background thread reports the end of an attempt to connect. @param replaceAt when another is to take the
    /// connection's place; max(): never
    void connected(Stream stream, TimePoint replaceAt = TimePoint::max());
    void connectFailed(Fault fault);
    /// The same for an attempt to make another connection while there is one. @param stream closed: it has failed
    void replacement(Stream stream, TimePoint replaceAt);
    /// And how far an attempt for connected() has come, see Connector::connect().
    void reached(Cause stage);

    /// The server is at another address now: leaves the one here at once, without waiting for what is due.
    void cut();
    /// The server at this address is no master any more: leaves it when what is due has been answered.
    void leave(const std::string& address);

    /// Another node may have what was asked for here: see Link::handOn(). @param leaves ends the connection too
    void handOn(const Link::IsElsewhere& isElsewhere, bool leaves);
    /// When the oldest request was written that has no answer; max(): there is none.
    [[nodiscard]] TimePoint owesSince();

    /// Ends everything: calls under way and later ones fail with `error`.
    void shutdown(Errc error);

    /// Whether no reply is due, for which shutdown has to wait.
    [[nodiscard]] bool idle();
    [[nodiscard]] bool isConnected();
    /// What TLS has agreed on; nothing without a connection, or without TLS.
    [[nodiscard]] std::optional<TlsReport> tlsReport();

private:
    using Lock = AdaptiveLock;
    enum class Progress { moved, stuck, broken };

    AdaptiveMutex mutex_;

    [[nodiscard]] bool mayJudge(const Standstill& standstill, TimePoint now) const noexcept REDISLOCK_REQUIRES(mutex_);
    void lead(Lock& lock, const Call& own, TimePoint until, Standstill& standstill, const std::stop_token& stop)
        REDISLOCK_REQUIRES(mutex_);
    Progress step(Lock& lock, FinishedCalls& finished, TimePoint until) REDISLOCK_REQUIRES(mutex_);
    Progress readOrBreak(Lock& lock, FinishedCalls& finished, TimePoint until) REDISLOCK_REQUIRES(mutex_);
    void takeQueued() REDISLOCK_REQUIRES(mutex_);
    Progress prepare() REDISLOCK_REQUIRES(mutex_);
    bool send(Lock& lock, Transferred& sent) REDISLOCK_REQUIRES(mutex_);
    void endSend() REDISLOCK_REQUIRES(mutex_);
    void awaitSend(Lock& lock, TimePoint until) REDISLOCK_REQUIRES(mutex_);
    Progress write(Lock& lock) REDISLOCK_REQUIRES(mutex_);
    Progress writeNow(Lock& lock) REDISLOCK_REQUIRES(mutex_);
    void writeForLeader(Lock& lock) REDISLOCK_REQUIRES(mutex_);
    [[nodiscard]] bool isSilent() REDISLOCK_REQUIRES(mutex_);
    bool letCrowdQueue(Lock& lock) REDISLOCK_REQUIRES(mutex_);
    Progress read(Lock& lock, FinishedCalls& finished, TimePoint until = TimePoint{}) REDISLOCK_REQUIRES(mutex_);
    bool dispatch(std::size_t count, FinishedCalls& finished) REDISLOCK_REQUIRES(mutex_);
    void wakeOneWaiter() REDISLOCK_REQUIRES(mutex_);
    [[nodiscard]] Call* successor() const noexcept REDISLOCK_REQUIRES(mutex_);
    void resign(FinishedCalls& finished) REDISLOCK_REQUIRES(mutex_);
    static Reason whyOver(Progress progress) noexcept;
    void disconnect(Reason why, FinishedCalls& finished) noexcept REDISLOCK_REQUIRES(mutex_);
    void changeOver(FinishedCalls& finished) noexcept REDISLOCK_REQUIRES(mutex_);
    void leaveStream() noexcept REDISLOCK_REQUIRES(mutex_);
    void connectIfNeeded() noexcept REDISLOCK_REQUIRES(mutex_);
    void armSweep() REDISLOCK_REQUIRES(mutex_);
    /// Whether a thread that leads has something to do, and nobody leads.
    [[nodiscard]] bool wantsLeader() const noexcept REDISLOCK_REQUIRES(mutex_)
    {
        return !led_ && link_.isOpen() && !link_.queue().empty();
    }
    [[nodiscard]] bool hasEnded(Progress progress) const noexcept REDISLOCK_REQUIRES(mutex_)
    {
        return progress == Progress::broken || link_.isOver();
    }
    [[nodiscard]] bool isOver(Progress progress, TimePoint now) REDISLOCK_REQUIRES(mutex_)
    {
        return hasEnded(progress) || (progress == Progress::stuck && link_.timeIsOver(now));
    }

    const Background background_;
    const std::chrono::milliseconds timeout_;
    const ReplyLimits limits_;

    Link link_ REDISLOCK_GUARDED_BY(mutex_);
    bool led_ REDISLOCK_GUARDED_BY(mutex_) = false;
    bool writes_ REDISLOCK_GUARDED_BY(mutex_) = false; ///< a thread is writing `writing_`, and has taken it
    bool reads_ REDISLOCK_GUARDED_BY(mutex_) = false;  ///< the leader may sleep until something comes
    bool sweeping_ REDISLOCK_GUARDED_BY(mutex_) = false;
    /// A leader that began to look at this time found nothing to read.
    TimePoint emptyAt_ REDISLOCK_GUARDED_BY(mutex_){};
    /// How many callers got the last replies: so many may come back at once.
    std::size_t crowd_ REDISLOCK_GUARDED_BY(mutex_) = 0;
    /// How long the first of several answers takes: a mean of the last ones.
    std::chrono::nanoseconds answersTake_ REDISLOCK_GUARDED_BY(mutex_){0};

    /// Bytes of the written part of the queue, of which the socket may not have taken all.
    std::string writing_ REDISLOCK_GUARDED_BY(mutex_);
    std::size_t writtenBytes_ REDISLOCK_GUARDED_BY(mutex_) = 0;
    std::uint64_t packets_ REDISLOCK_GUARDED_BY(mutex_) = 0; ///< how often all that was queued was taken to be written
    std::condition_variable_any sendEnded_;
    int awaitSend_ REDISLOCK_GUARDED_BY(mutex_) = 0; ///< callers that sleep until `writes_` ends

    std::shared_ptr<Stream> next_;   ///< takes the place of the other one
    std::shared_ptr<Stream> stream_; ///< null when not connected; shared with the writing thread
    // used by the leader alone
    std::optional<ReplyReader> reader_;
    std::vector<Reply> replies_;
    using Buffer = std::array<char, std::size_t{16} * 1024>;
    std::unique_ptr<Buffer> buffer_; ///< from the first connection on: many nodes never have one
};

} // namespace redislock::detail
