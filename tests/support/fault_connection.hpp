/// @file
/// One client of a FaultProxy and its connection to the server. Used by the proxy only.
#pragma once

#include "support/fault_proxy.hpp"
#include "support/fault_rules.hpp"
#include "support/resp_framer.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <poll.h>

namespace redislock::test::proxy {

using Clock = std::chrono::steady_clock;

/// The state that all connections of a proxy share, guarded by the proxy's mutex.
struct Shared {
    RuleBook rules;
    std::deque<LoggedRequest> log;
    bool stalled = false;
    bool passesBytes = false; // on new connections
    std::size_t resets = 0;   // connections that their clients reset

    /// Adds to the log, and removes the oldest entry if the log is full.
    void record(std::size_t connection, const Words& words);
};

/// Bytes on their way through a lane.
struct Item {
    enum class Then { goOn, closeBoth, closeClient };

    std::string bytes{};
    std::size_t sent = 0;
    Clock::time_point due{};
    std::chrono::microseconds pace{0}; // between single bytes; 0: all at once
    Then then = Then::goOn;
    std::shared_ptr<const Words> request{}; // to be logged when it is sent
};

/// One direction of a connection.
struct Lane {
    RespFramer framer{};
    std::deque<Item> outbox{};
    std::size_t held = 0;         // bytes in the outbox
    Clock::time_point nextByte{}; // of an item with a pace
    bool opaque = false;          // no frames any more, bytes pass as they come
    std::size_t taken = 0;        // bytes, if there never were frames
    bool stalled = false;         // by Action::stallDirection
    bool lost = false;            // everything from now on, by Action::drop or swallow
    bool ended = false;           // the sender has closed
    bool endPassedOn = false;     // and the receiver's side was closed
    bool cut = false;             // nothing after the last item of the outbox will be passed on

    [[nodiscard]] bool wantsBytes() const noexcept;
    /// Whether the first item may be sent.
    [[nodiscard]] bool sendable(Clock::time_point now) const noexcept;
    [[nodiscard]] bool allPassedOn() const noexcept { return ended && outbox.empty() && !stalled; }
    void push(Item item);
};

/// The channels a connection has subscribed to, by the kind of subscription. Kinds are in lower case: "punsubscribe".
class Subscriptions {
public:
    /// Learns from a confirmation.
    void confirm(const std::string& kind, const std::string& channel);
    /// How many confirmations an unsubscribe without channels gets.
    [[nodiscard]] std::size_t confirmationsOf(const std::string& kind) const;
    [[nodiscard]] bool any() const;

    static bool isConfirmation(const std::string& kind);
    static bool isMessage(const std::string& kind);

private:
    std::map<std::string, std::set<std::string>> channels_; // without the empty ones
};

/// A request whose reply has not come.
struct Pending {
    std::shared_ptr<const Words> words;
    std::size_t replies = 1; // still to come; 0: not known before the first
    enum class Fate {
        passed,
        lost,      // it goes nowhere
        lostInAll, // nor does anything behind it
    };
    Fate fate = Fate::passed; // of the reply
};

/// Two sockets, a lane for each direction, and the requests that wait for their replies. Not thread-safe.
class Connection {
public:
    /// Takes over the sockets, which must not block.
    Connection(Shared& shared, std::size_t number, int client, int server);
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection() { close(FaultProxy::Close::orderly); }

    [[nodiscard]] bool closed() const noexcept { return client_ < 0 && server_ < 0; }
    [[nodiscard]] bool clientIsThere() const noexcept { return client_ >= 0 && !requests_.ended; }
    void resume() noexcept { requests_.stalled = replies_.stalled = false; }
    void close(FaultProxy::Close how) noexcept;

    [[nodiscard]] pollfd clientPoll(Clock::time_point now) const noexcept;
    [[nodiscard]] pollfd serverPoll(Clock::time_point now) const noexcept;
    /// When the next item that is held back becomes due after @p now; a time far away if there is none.
    [[nodiscard]] Clock::time_point nextDue(Clock::time_point now) const noexcept;

    void readClient();
    void readServer();
    /// Sends the items that are due, then passes on the ends of the streams.
    void flush(Clock::time_point now);

private:
    using Fate = Pending::Fate;

    std::optional<std::string> read(int socket, Lane& lane);
    template <class TakeFrame>
    void take(Lane& lane, const std::string& bytes, TakeFrame takeFrame);

    void takeBytes(Lane& lane, const std::string& bytes);
    void takeRequest(Frame frame);
    void passRequest(std::string bytes, const std::shared_ptr<const Words>& words, Fate ofReply);
    void replaceRequest(const std::string& bytes);
    void expectReplies(const std::shared_ptr<const Words>& words, Fate fate);
    void becomeOpaque();

    void takeReply(Frame frame);
    void takePush(Frame frame);
    /// Whether the frame answers no request: a message, or an unsubscribe by the server itself.
    [[nodiscard]] bool isPush(const Frame& frame) const;
    [[nodiscard]] bool isAwaitedConfirmation(const Frame& frame) const;
    /// The request that the reply belongs to; removed from the list if this is its last reply.
    Pending settle(const Frame& reply);

    void flush(Lane& lane, int socket, Clock::time_point now);
    /// Removes the first item after it was sent. @return whether the lane still has its receiver.
    bool finish(Lane& lane);
    /// The client is gone: what it was to be sent goes nowhere, but what it has sent still goes on.
    void loseReplies();
    void passEnds();

    Shared& shared_;
    std::size_t number_;
    int client_;
    int server_;
    const bool passesBytes_ = shared_.passesBytes;
    Lane requests_;
    Lane replies_;
    std::deque<Pending> pending_;
    Subscriptions subscriptions_;
};

} // namespace redislock::test::proxy
