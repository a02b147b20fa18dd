/// @file
/// A Redisson client: a Java process that does what a test tells it.
#pragma once

#include "redislock/testing/child_process.hpp"
#include "redislock/testing/redis_server.hpp"

#include <chrono>
#include <concepts>
#include <deque>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {

/// What the driver (tests/interop/java) answered: compares with "ok", "ok VALUE", "false" and "error CLASS".
struct Answer {
    std::string how;   ///< ok, false or error
    std::string value; ///< of ok; of error the class and its message
    std::chrono::microseconds elapsed{};

    friend bool operator==(const Answer& answer, std::string_view expected) { return answer.brief() == expected; }
    friend std::ostream& operator<<(std::ostream& out, const Answer& answer);

private:
    [[nodiscard]] std::string brief() const;
};

/// A Java process with one Redisson client of its own. The constructor starts it, the destructor ends it at once; what it
/// held stays held in Redis, as after a crash. It dies with the thread that started it. Thread safety: unsafe.
class JavaClient {
public:
    /// @param redisson one of the versions that were built. @param watchdog how long its renewed leases are.
    /// @throws std::runtime_error, with the end of its log, when it does not reach the server.
    JavaClient(const testing::RedisServer& server, const std::string& redisson, std::chrono::milliseconds watchdog);
    JavaClient(JavaClient&&) = delete;
    ~JavaClient();

    /// Its UUID, the first part of its owners in Redis.
    [[nodiscard]] const std::string& id() const noexcept { return id_; }
    /// A word for a Java thread that did nothing yet.
    std::string newThread();
    /// Has a Java thread do something, without waiting for it. @param command `kind operation object arguments...`
    void send(const std::string& thread, const std::string& command);
    /// The next answer of a Java thread. @throws std::runtime_error when none comes within 20 s, or the process ended.
    Answer answer(const std::string& thread);
    /// Ends the process at once.
    void kill() noexcept { process_.kill(); }

private:
    void readLine(std::chrono::steady_clock::time_point deadline);
    [[noreturn]] void fail(const std::string& what);

    testing::detail::TemporaryFolder folder_;
    int commands_ = -1;
    int answers_ = -1;
    std::string read_; // no whole line yet
    std::map<std::string, std::deque<Answer>> unread_;
    std::string id_;
    int threads_ = 0;
    testing::detail::ChildProcess process_;
};

/// An object of Redisson, used by one Java thread of its own. Must not outlive the client.
class JavaObject {
public:
    /// @param kind as the driver calls it: lock, fairLock, semaphore...
    JavaObject(JavaClient& client, std::string_view kind, std::string name)
        : client_(client), kind_(kind), name_(std::move(name)), thread_(client.newThread())
    {
    }

    /// Has the Java thread do something and waits for it: `run("tryLock", 5s, 30s)`.
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
        client_.send(thread_, command);
    }
    /// Waits for what was started.
    Answer answer() { return client_.answer(thread_); }

    /// What the thread is called in Redis.
    std::string owner() { return run("owner").value; }

private:
    static std::string word(std::chrono::milliseconds time) { return std::to_string(time.count()); }
    static std::string word(std::integral auto number) { return std::to_string(number); }
    static std::string word(std::string_view text) { return std::string(text); }

    JavaClient& client_;
    std::string kind_;
    std::string name_;
    std::string thread_;
};

} // namespace redislock::test
