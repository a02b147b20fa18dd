/// @file
/// A TCP proxy in front of a Redis server that causes exactly the faults that a test asks for.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::testing {
class RedisServer;
}

namespace redislock::test {

/// Where a frame comes from and what it is.
enum class Direction {
    request, ///< a command of the client
    reply,   ///< the server's answer to a command; (un)subscribe confirmations are answers
    push,    ///< a pub/sub message, or another frame that answers no request
};

/// Which frames a rule applies to.
struct Match {
    /// The command, in any case: "EVALSHA", "SCRIPT LOAD"; "*" or empty: any. A reply has the command of its request. A
    /// push has its kind: "message", "pmessage", "smessage".
    std::string command = "*";
    /// A text in any argument of the request (a SHA1 or its beginning, a key, a part of a script's text) or in any part
    /// of the push (channel, payload); empty: any.
    std::string script{};
    Direction direction = Direction::request;
    /// Only the n-th matching frame since the rule was added, counted from 1 over all connections; 0: every one.
    std::size_t nth = 1;
    /// One in @p oneIn matching frames, chosen at random (the same choice each time), instead of the n-th; 0: nth
    /// counts.
    std::size_t oneIn = 0;
    /// Only the bytes from this place of the direction on, counted from 0 on each connection; for a proxy that passes
    /// bytes: see FaultProxy::passBytes().
    std::optional<std::size_t> atByte{};
};

/// What happens to a frame that a rule hits. "Closes" is an orderly end (FIN), after all earlier frames of the same
/// direction were passed on.
class Action {
public:
    enum class Kind {
        pass,
        drop,
        delay,
        duplicate,
        cut,
        cutAfterForward,
        swallow,
        truncate,
        replace,
        split,
        stallDirection,
    };

    /// Nothing; the rule only counts.
    static Action pass() { return Action(Kind::pass); }
    /// The frame is lost, and so is everything behind it in its direction, as on a real link: no later reply may look
    /// like that of a lost request. The connection stays. If the frame is a push, only this push is lost.
    static Action drop() { return Action(Kind::drop); }
    /// The frame, and everything behind it in its direction, come later.
    static Action delay(std::chrono::milliseconds time);
    /// The frame comes twice. The second reply to a doubled request is lost, so that the client stays in step; a
    /// doubled reply puts the client out of step.
    static Action duplicate() { return Action(Kind::duplicate); }
    /// Closes both sides instead of forwarding the frame.
    static Action cut() { return Action(Kind::cut); }
    /// Forwards the frame, then closes. A request is executed, but the client gets neither its reply nor any other: its
    /// side is closed at once, the server's side when the server has answered. Behind a reply or push both sides are
    /// closed.
    static Action cutAfterForward() { return Action(Kind::cutAfterForward); }
    /// A request is executed, but its reply and everything behind it are lost; the connection stays. For a reply or
    /// push the same as drop.
    static Action swallow() { return Action(Kind::swallow); }
    /// Forwards the first @p count bytes of the frame, then closes both sides.
    static Action truncate(std::size_t count);
    /// Forwards @p bytes in place of the frame.
    static Action replace(std::string bytes);
    /// Forwards the frame byte by byte, each in a segment of its own, @p pace apart.
    static Action split(std::chrono::microseconds pace = std::chrono::microseconds(50));
    /// From this frame on nothing passes in its direction on its connection, which stays open; resume() ends this and
    /// lets the frames through that were held back.
    static Action stallDirection() { return Action(Kind::stallDirection); }

    [[nodiscard]] Kind kind() const noexcept { return kind_; }
    /// The time of a delay, or the pace of a split.
    [[nodiscard]] std::chrono::microseconds time() const noexcept { return time_; }
    /// The bytes that a truncate forwards.
    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    /// The bytes that a replace forwards.
    [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

private:
    explicit Action(Kind kind) : kind_(kind) {}

    Kind kind_;
    std::chrono::microseconds time_{0};
    std::size_t count_ = 0;
    std::string bytes_;
};

/// A fault: which frames it hits, what it does, and how often at most.
struct Rule {
    Match match;
    Action action = Action::pass();
    /// Hits after which the rule does nothing more; 0: no limit.
    std::size_t limit = 0;
};

/// Names a rule of one proxy; never used again for another rule.
enum class RuleId : std::uint64_t {};

/// A request that the proxy passed on whole.
struct LoggedRequest {
    /// Connections are counted from 1 in the order in which they were accepted.
    std::size_t connection = 0;
    /// `CLOCK_BOOTTIME` when the last byte was handed to the server's connection.
    std::chrono::nanoseconds time{0};
    /// The arguments as the client sent them, each cut after 8192 bytes.
    std::vector<std::string> arguments;
};

/// A TCP proxy, run by one thread of its own, that knows where requests and replies begin and end.
///
/// It listens on a free port of 127.0.0.1 and opens one connection to the server per client. Without rules it passes
/// all bytes on unchanged. A frame is matched against the rules in the order in which they were added; every matching
/// rule counts the frame, and the first rule that is due acts on it.
///
/// Understands RESP2 and RESP3 frames, inline commands, pipelines, MULTI and pub/sub. If a connection becomes a replica
/// (PSYNC) or sends anything else, its bytes are passed on unchanged from then on: rules no longer apply to it;
/// stall(), closeAll() and refuse() still work. Not understood: CLIENT REPLY OFF, MONITOR together with other commands.
/// What is encrypted has no frames: see passBytes().
///
/// Limits: a lane (one direction of a connection) holds about 4 MiB back before it stops reading; the log holds the
/// last 100 000 requests.
///
/// Thread safety: all functions may be called from any thread. None blocks for longer than a few milliseconds, except
/// the functions named await… and those that say so.
class FaultProxy {
public:
    /// A proxy in front of @p server, over TCP; passes bytes if that speaks TLS. Keeps no reference to it.
    explicit FaultProxy(const testing::RedisServer& server);
    /// A proxy in front of an IPv4 address.
    FaultProxy(const std::string& host, std::uint16_t port);
    FaultProxy(const FaultProxy&) = delete;
    FaultProxy& operator=(const FaultProxy&) = delete;
    /// Closes everything and joins the thread.
    ~FaultProxy();

    [[nodiscard]] std::string host() const { return "127.0.0.1"; }
    [[nodiscard]] std::uint16_t port() const noexcept;
    /// The URL of the RedisServer that the proxy was made from, with the proxy's port; otherwise
    /// `redis://127.0.0.1:PORT`.
    [[nodiscard]] std::string url() const;

    /// Looks for no frames on connections that are accepted from now on. What comes in one read (at most 16 KiB) is a
    /// frame without words: rules match it by its direction (request or reply) and place alone, and nothing is logged.
    /// `{.direction = Direction::reply, .atByte = 100}` with Action::cut() closes both sides after 100 bytes to the
    /// client; `{.nth = 0}` with Action::split() sends all bytes of clients one by one.
    void passBytes();

    /// Sets the server for connections accepted from now on.
    void setUpstream(const std::string& host, std::uint16_t port);
    void setUpstream(const testing::RedisServer& server);
    /// From now on the proxy connects to the server from this address of the machine.
    void connectFrom(const std::string& host);

    RuleId add(Rule rule);
    /// The same as add(Rule{match, action, limit}).
    RuleId add(Match match, Action action, std::size_t limit = 0);
    /// Ends a rule; its hits stay readable.
    void remove(RuleId id);
    /// Ends all rules; their hits stay readable. Does not end stalls: see resume().
    void clear();
    /// How often the rule took effect.
    [[nodiscard]] std::size_t hits(RuleId id) const;
    /// Waits until the rule has at least @p count hits. @return false when @p timeout was over first.
    [[nodiscard]] bool awaitHits(RuleId id, std::size_t count = 1,
                                 std::chrono::milliseconds timeout = std::chrono::seconds(15)) const;

    /// How many requests in the log have @p text as their command, in any case, or contained in another argument.
    [[nodiscard]] std::size_t requests(std::string_view text) const;
    /// How many requests in the log match; `direction`, `nth` and `oneIn` are ignored.
    [[nodiscard]] std::size_t requests(const Match& match) const;
    /// Waits until requests(text) is at least @p count. @return false when @p timeout was over first.
    [[nodiscard]] bool awaitRequests(std::string_view text, std::size_t count = 1,
                                     std::chrono::milliseconds timeout = std::chrono::seconds(15)) const;
    /// Waits until requests(match) is at least @p count. @return false when @p timeout was over first.
    [[nodiscard]] bool awaitRequests(const Match& match, std::size_t count = 1,
                                     std::chrono::milliseconds timeout = std::chrono::seconds(15)) const;
    [[nodiscard]] std::vector<LoggedRequest> requestLog() const;
    void clearRequestLog();

    /// How closeAll() ends connections.
    enum class Close { orderly, reset };
    /// Closes all connections, both sides; returns when that is done. New ones are still accepted.
    void closeAll(Close how = Close::orderly);
    /// From now on a connect is refused (and a connection that was not yet accepted is reset); existing connections
    /// stay. The port stays bound.
    void refuse();
    /// Ends refuse(). Connects are accepted again before it returns. @throws std::system_error when the port was lost.
    void accept();
    /// From now on nothing passes in any direction, the closing of a side included. New connections are accepted, but
    /// stalled too.
    void stall();
    /// Ends stall() and every Action::stallDirection(): everything that was held back goes through.
    void resume();

    /// Connections whose client has not closed yet.
    [[nodiscard]] std::size_t connections() const;
    /// Connections accepted so far.
    [[nodiscard]] std::size_t accepted() const;
    /// Connections that their clients have ended by a reset. What they had sent before still goes through.
    [[nodiscard]] std::size_t resets() const;

private:
    class Engine;

    std::unique_ptr<Engine> engine_;
    std::string scheme_ = "redis://"; ///< and what of the URL follows it
    std::string options_;             ///< of the URL, behind the port
};

} // namespace redislock::test
