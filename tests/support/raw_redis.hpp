/// @file
/// A small blocking Redis client for tests, independent of the library under test.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

struct redisReader;

namespace redislock::testing {
class RedisServer;
}

namespace redislock::test {

/// One answer of Redis.
struct Value {
    enum class Kind { nil, integer, string, status, error, array };

    Kind kind = Kind::nil;
    std::int64_t number = 0;     ///< of an integer
    std::string characters;      ///< of a string, a status or an error
    std::vector<Value> elements; ///< of an array

    [[nodiscard]] bool isNil() const noexcept { return kind == Kind::nil; }
    [[nodiscard]] bool isInteger() const noexcept { return kind == Kind::integer; }
    [[nodiscard]] bool isString() const noexcept { return kind == Kind::string; }
    [[nodiscard]] bool isStatus() const noexcept { return kind == Kind::status; }
    [[nodiscard]] bool isError() const noexcept { return kind == Kind::error; }
    [[nodiscard]] bool isArray() const noexcept { return kind == Kind::array; }

    /// @throws std::logic_error, which shows the value, when it is not an integer.
    [[nodiscard]] std::int64_t integer() const;
    /// The text of a string, a status or an error.
    /// @throws std::logic_error, which shows the value, for anything else.
    [[nodiscard]] const std::string& text() const;

    friend bool operator==(const Value&, const Value&) = default;
};

/// As redis-cli shows it, on one line: `(nil)`, `3`, `"text"`, `OK`, `(error) ERR ...`, `["a", 1]`.
std::ostream& operator<<(std::ostream& out, const Value& value);

/// A blocking client of one server.
///
/// It connects at the first command, and again when it finds its connection closed before it sends a command; a command
/// is never sent twice. Errors of Redis come back as Value::isError(); a failed connection and a missing answer throw
/// std::runtime_error, after which the next command connects anew. Never raises SIGPIPE. Thread safety: distinct
/// objects: safe. Shared objects: unsafe.
class RawRedis {
public:
    using Arguments = std::vector<std::string>;

    /// A client of @p server (with its password, over TCP if the server listens there without TLS). It finds the server
    /// again after RedisServer::restart() and keeps no reference to the RedisServer.
    explicit RawRedis(const testing::RedisServer& server);
    /// A client of an IPv4 address, for example that of a FaultProxy.
    RawRedis(std::string host, std::uint16_t port, std::string password = {});
    /// A client of a unix socket.
    explicit RawRedis(std::string unixSocket, std::string password = {});
    RawRedis(RawRedis&&) noexcept;
    RawRedis& operator=(RawRedis&&) noexcept;
    ~RawRedis();

    /// How long a connect or an answer may take; default 5 s.
    void setTimeout(std::chrono::milliseconds timeout) noexcept { timeout_ = timeout; }

    /// From now on a client of the cluster with nodes at these ports: it follows redirections, publishes on sharded
    /// channels (PUBLISH), and counts the listeners to these (PUBSUB) and the calls of commands over all nodes.
    void joinCluster(const std::vector<std::uint16_t>& ports);

    /// Sends one command and waits for its answer.
    Value command(std::initializer_list<std::string_view> arguments);
    Value command(const Arguments& arguments);

    /// Sends one command without waiting: for pipelines, SUBSCRIBE and faults that never answer.
    void send(std::initializer_list<std::string_view> arguments);
    void send(const Arguments& arguments);
    /// Sends @p bytes as they are.
    void sendBytes(std::string_view bytes);
    /// The next answer or pub/sub message; empty when none came within @p timeout.
    /// @throws std::runtime_error when the connection was closed or the bytes are not RESP.
    std::optional<Value> receive(std::chrono::milliseconds timeout);
    /// The next answer within the time-out of the client. @throws std::runtime_error when none came.
    Value receive();
    /// Closes the connection; the next command opens a new one.
    void disconnect() noexcept;

    /// HGETALL; empty when there is no such key.
    std::map<std::string, std::string> hash(std::string_view name);
    /// PTTL: -1 without expiry, -2 without key.
    std::chrono::milliseconds pttl(std::string_view name);
    bool exists(std::string_view name);
    /// GET; empty when there is no such key.
    std::optional<std::string> get(std::string_view name);
    /// How often the server ran @p name (for example "evalsha", or "client|list"), from INFO commandstats.
    std::uint64_t commandCalls(std::string_view name);
    /// A field of INFO all. @throws std::runtime_error when there is none.
    std::string info(std::string_view field);

private:
    struct ReaderDeleter {
        void operator()(redisReader* reader) const noexcept;
    };

    Value commandInCluster(Arguments arguments);
    template <class Range>
    void sendCommand(const Range& arguments);
    void connectIfClosed();
    void connect();
    bool peerClosed() const noexcept;
    /// Writes all bytes or throws.
    void write(std::string_view bytes);
    [[noreturn]] void fail(const std::string& what);

    std::string host_;
    std::uint16_t port_ = 0;
    std::string unixSocket_;
    std::string password_;
    std::chrono::milliseconds timeout_{5000};
    int socket_ = -1;
    std::map<std::uint16_t, std::unique_ptr<RawRedis>> nodes_; ///< of a cluster, by port; empty: none
    std::unique_ptr<redisReader, ReaderDeleter> reader_;
};

} // namespace redislock::test
