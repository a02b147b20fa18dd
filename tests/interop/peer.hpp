/// @file
/// A process of either language that follows the commands of a test.
#pragma once

#include "redislock/testing/child_process.hpp"
#include "redislock/testing/redis_server.hpp"

#include <chrono>
#include <concepts>
#include <csignal>
#include <cstddef>
#include <deque>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::test {

/// The answer of a driver (tests/interop/java, tests/interop/cpp): compares with "ok", "ok VALUE", "false" and "error
/// CLASS".
struct Answer {
    std::string how;   ///< ok, false or error
    std::string value; ///< of ok; of error the class and its message
    std::chrono::microseconds elapsed{};

    friend bool operator==(const Answer& answer, std::string_view expected) { return answer.brief() == expected; }
    friend std::ostream& operator<<(std::ostream& out, const Answer& answer);

private:
    [[nodiscard]] std::string brief() const;
};

/// The options for starting a process.
struct PeerOptions {
    std::string redisson;                     ///< the version of Redisson; empty: our library
    std::vector<std::string> urls;            ///< its servers: a name `a@1` is on the second, any other on the first
    std::chrono::milliseconds watchdog;       ///< how long its renewed leases are
    std::chrono::milliseconds place{300'000}; ///< how long it keeps its place in a fair queue, beyond its wait
    std::chrono::milliseconds patience{
        0};                             ///< how long a server may take to answer, without a second try; 0: the default
    std::chrono::seconds clockAhead{0}; ///< offset of the wall clock of a process of Redisson; negative: behind
    std::string prefix{};               ///< Redisson's name x is this prefix and x in Redis
};

/// A process with one client of Redisson, or of our library, for each server. The constructor starts it, the destructor
/// ends it at once; its locks stay held in Redis, as after a crash. It dies with the thread that started it. Thread
/// safety: unsafe.
class Peer {
public:
    /// @throws std::runtime_error, with the end of the process' log, when the process does not reach the server.
    explicit Peer(const PeerOptions& options);
    Peer(Peer&&) = delete;
    ~Peer();

    /// The UUID of the process' client, the first part of its holders in Redis.
    [[nodiscard]] const std::string& id() const noexcept { return id_; }
    /// A word for a new thread of the process.
    std::string newThread();
    /// Sends a command to one of the process' threads, without waiting for the answer.
    /// @param command `kind operation object arguments...`
    void send(const std::string& thread, const std::string& command);
    /// The next answer of a thread. @throws std::runtime_error when none comes within 20 s, or the process ended.
    Answer answer(const std::string& thread);
    /// The answers of all threads so far, in order, without waiting for more; also for a process that has ended.
    std::vector<std::pair<std::string, Answer>> told();
    /// Whether the process has not ended.
    [[nodiscard]] bool runs() noexcept { return process_.runs(); }
    /// The end of the process' log.
    [[nodiscard]] std::string lastWords() const;
    /// Ends the process at once.
    void kill() noexcept { process_.kill(); }
    /// Stops it where it is; it is ended all the same.
    void freeze() noexcept { process_.signal(SIGSTOP); }
    /// 0 when it has ended.
    [[nodiscard]] pid_t pid() const noexcept { return process_.pid(); }

private:
    void readLine(std::chrono::steady_clock::time_point deadline);
    bool readSome(std::chrono::milliseconds patience);
    std::optional<std::pair<std::string, Answer>> takeLine();
    [[noreturn]] void fail(const std::string& what);

    testing::detail::TemporaryFolder folder_;
    int commands_ = -1;
    int answers_ = -1;
    std::string read_;
    std::size_t taken_ = 0; // how much of read_ was taken: whole lines
    std::map<std::string, std::deque<Answer>> unread_;
    std::string id_;
    int threads_ = 0;
    testing::detail::ChildProcess process_;
};

/// An object in a process, used by one thread of its own. Must not outlive the process.
class PeerObject {
public:
    /// @param kind as the drivers call it: lock, fairLock, semaphore...
    PeerObject(Peer& peer, std::string_view kind, std::string name)
        : PeerObject(peer, kind, std::move(name), peer.newThread())
    {
    }

    /// Runs an operation on the thread and waits for the answer: `run("tryLock", 5s, 30s)`.
    template <class... Arguments>
    Answer run(std::string_view operation, const Arguments&... arguments)
    {
        start(operation, arguments...);
        return answer();
    }
    /// The same without waiting.
    template <class... Arguments>
    void start(std::string_view operation, const Arguments&... arguments)
    {
        std::string command = kind_ + ' ' + std::string(operation) + ' ' + name_;
        ((command += ' ' + word(arguments)), ...);
        peer_.send(thread_, command);
    }
    /// Another object of that name in the process, used by the same thread.
    [[nodiscard]] PeerObject sibling(std::string_view kind) const { return {peer_, kind, name_, thread_}; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    /// Waits for the answer to a started operation.
    Answer answer() { return peer_.answer(thread_); }

private:
    PeerObject(Peer& peer, std::string_view kind, std::string name, std::string thread)
        : peer_(peer), kind_(kind), name_(std::move(name)), thread_(std::move(thread))
    {
    }

    static std::string word(std::chrono::milliseconds time) { return std::to_string(time.count()); }
    static std::string word(std::integral auto number) { return std::to_string(number); }
    static std::string word(std::string_view text) { return std::string(text); }

    Peer& peer_;
    std::string kind_;
    std::string name_;
    std::string thread_;
};

} // namespace redislock::test
