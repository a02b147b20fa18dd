/// @file
/// The common parts of ThreadLink's tests: calls, and the other end of every connection: the test itself plays
/// Redis on a socketpair.
#pragma once

#include "link/thread_link.hpp"

#include "support/eventually.hpp"
#include "wire/codec.hpp"
#include "wire/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace redislock::detail {

using namespace std::chrono_literals;

inline constexpr TimePoint past{};
inline constexpr TimePoint never = TimePoint::max();

/// A call whose request is its own name; counts how often it ended unawaited.
class TestCall final : public Call {
public:
    explicit TestCall(std::string name, Mode how = Call::Mode::awaited) : name_(std::move(name)) { mode = how; }

    void encode(std::string& out, Form by) override
    {
        appendCommand(out, {by == Form::bySha ? "EVALSHA" : "EVAL", name_});
    }
    void finished() noexcept override
    {
        ++ends;
        if (atEnd) {
            atEnd();
        }
    }

    std::function<void()> atEnd;
    std::atomic<int> ends{0};

private:
    std::string name_;
};

inline std::shared_ptr<TestCall> awaited(std::string name)
{
    return std::make_shared<TestCall>(std::move(name));
}

inline std::shared_ptr<TestCall> detached(std::string name)
{
    return std::make_shared<TestCall>(std::move(name), Call::Mode::detached);
}

/// "1" for the reply 1; for failures "unreachable" and the like, with what they leave open; "pending" before the end.
inline std::string inWords(const Call& call, const Outcome& outcome)
{
    if (call.pending) {
        return "pending";
    }
    if (outcome.replied) {
        return call.reply.isError() ? call.reply.text : std::to_string(call.reply.integer);
    }
    switch (outcome.fault.failure) {
    case Failure::notConnected:
        return "not connected";
    case Failure::lostReply:
        return "reply lost";
    case Failure::refused:
    case Failure::demoted:
    case Failure::moved:
        return "refused";
    case Failure::fatal:
        break;
    }
    return std::error_code(outcome.fault.error).message();
}

inline std::string inWords(const Call& call)
{
    return inWords(call, call.outcome);
}

inline const std::string afterShutdown = make_error_code(Errc::shutdown).message();

/// The server's end of a connection.
class FakeRedis {
public:
    explicit FakeRedis(int socket) noexcept : socket_(socket) {}
    FakeRedis(FakeRedis&& other) noexcept : socket_(std::exchange(other.socket_, -1)), reader_(std::move(other.reader_))
    {
        assertIdle(other);
    }
    FakeRedis& operator=(FakeRedis&& other) noexcept
    {
        hangUp();
        assertIdle(other);
        socket_ = std::exchange(other.socket_, -1);
        reader_ = std::move(other.reader_);
        owed_ = 0;
        return *this;
    }
    ~FakeRedis() { hangUp(); }

    void hangUp() noexcept
    {
        if (sender_.joinable()) {
            ::shutdown(socket_, SHUT_RD); // ends its wait
            sender_.join();
        }
        if (socket_ >= 0) {
            ::close(std::exchange(socket_, -1));
        }
    }

    /// Replies as a server does: when there is a request. At once if there is one; otherwise a thread waits for the
    /// request.
    void reply(std::string_view text)
    {
        std::string bytes(text);
        const auto replies = std::count(bytes.begin(), bytes.end(), '\n');
        if (owed_ > 0 || isAsked(0)) {
            owed_ -= std::min<std::ptrdiff_t>(owed_, replies);
            return replyUnasked(bytes);
        }
        sender_ = std::thread([this, bytes = std::move(bytes), before = std::move(sender_)]() mutable {
            if (before.joinable()) {
                before.join();
            }
            (void)isAsked(longest);
            replyUnasked(bytes);
        });
    }

    void replyUnasked(std::string_view bytes) const { ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }

    /// The requests since the last call, without waiting: "a", or "EVAL a" if the script was sent whole.
    std::vector<std::string> requests()
    {
        std::vector<std::string> all;
        while (receive(MSG_DONTWAIT)) {
            take(all);
        }
        return all;
    }

    /// Waits for the next packet. @return its requests; nothing at the end of the connection, or when no packet comes.
    std::vector<std::string> nextRequests()
    {
        std::vector<std::string> all;
        while (all.empty() && isAsked(longest) && receive(MSG_DONTWAIT)) {
            take(all);
        }
        return all;
    }

    /// The number of bytes that have come; does not wait, and does not parse the bytes.
    [[nodiscard]] std::size_t drain()
    {
        owed_ = std::numeric_limits<std::ptrdiff_t>::max();
        std::array<char, 64 * 1024> buffer;
        std::size_t all = 0;
        for (;;) {
            const auto n = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
            if (n <= 0) {
                return all;
            }
            all += static_cast<std::size_t>(n);
        }
    }

    /// Whether the client has ended the connection.
    [[nodiscard]] bool isLeft() const
    {
        char byte = 0;
        return ::recv(socket_, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
    }

private:
    static void assertIdle(const FakeRedis& other)
    {
        if (other.sender_.joinable()) {
            throw std::logic_error("moved while a reply is outstanding");
        }
    }

    static constexpr int longest = 10'000; ///< ms, for things that should happen soon

    [[nodiscard]] bool isAsked(int milliseconds) const
    {
        pollfd socket{socket_, POLLIN, 0};
        return ::poll(&socket, 1, milliseconds) > 0;
    }

    bool receive(int flags)
    {
        std::array<char, 16 * 1024> buffer;
        const auto n = ::recv(socket_, buffer.data(), buffer.size(), flags);
        if (n > 0) {
            reader_.feed({buffer.data(), static_cast<std::size_t>(n)});
        }
        return n > 0;
    }

    void take(std::vector<std::string>& all)
    {
        Reply request;
        while (reader_.next(request) == ReplyReader::Status::complete) {
            const bool whole = request.elements.at(0).text == "EVAL";
            all.push_back((whole ? "EVAL " : "") + request.elements.at(1).text);
            ++owed_;
        }
    }

    int socket_;
    std::ptrdiff_t owed_ = 0; // replies to requests that were taken
    std::thread sender_;
    ReplyReader reader_; // requests are arrays of texts, as replies may be
};

inline std::pair<int, int> socketPair(int type)
{
    int ends[2];
    if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) {
        throw std::runtime_error("no socketpair");
    }
    return {ends[0], ends[1]};
}

/// A connection without a background thread: the test itself connects and sweeps.
class ThreadLinkTest : public ::testing::Test {
protected:
    /// @param type with SOCK_SEQPACKET each write of the client is one packet of its own.
    FakeRedis connect(int type = SOCK_STREAM, TimePoint replaceAt = never)
    {
        const auto [client, server] = socketPair(type);
        connection.connected(Stream(client), replaceAt);
        return FakeRedis(server);
    }

    /// Makes another connection, which is to take the place of the open one.
    FakeRedis replace()
    {
        const auto [client, server] = socketPair(SOCK_STREAM);
        connection.replacement(Stream(client), never);
        return FakeRedis(server);
    }

    /// Queues a first call, so that a connection is wanted, and connects.
    FakeRedis connectFor(const std::shared_ptr<TestCall>& first, int type = SOCK_STREAM)
    {
        connection.enqueue(first);
        return connect(type);
    }

    static std::string bytes(std::size_t count) { return std::string(count, 'x'); }

    void wantConnection(TimePoint notBefore)
    {
        connects.push_back(notBefore);
        ++connectsWanted;
    }

    std::vector<TimePoint> connects; ///< wanted, not before these moments
    std::atomic<int> connectsWanted{0};
    int sweepsWanted = 0;
    std::vector<TimePoint> replacements; ///< wanted, not before these moments
    std::vector<TimePoint> hurries;
    int demotions = 0;
    std::vector<std::pair<bool, Errc>> reports;
    ThreadLink connection{{.connect = [this](TimePoint notBefore) { wantConnection(notBefore); },
                           .replace = [this](TimePoint notBefore) { replacements.push_back(notBefore); },
                           .hurry = [this](TimePoint soonest) { hurries.push_back(soonest); },
                           .demoted = [this](const std::string&) { ++demotions; },
                           .sweepSoon = [this] { ++sweepsWanted; },
                           .refused = [](const Reply&, const Call*) {},
                           .report = [this](bool up, Reason error) { reports.emplace_back(up, error.errc()); }},
                          1h,
                          1};
    const std::shared_ptr<TestCall> a = awaited("a");
    const std::shared_ptr<TestCall> b = awaited("b");
    const std::shared_ptr<TestCall> c = awaited("c");
    const std::shared_ptr<TestCall> x = detached("x");
    const std::shared_ptr<TestCall> y = detached("y");
    const std::shared_ptr<TestCall> z = detached("z");
};

} // namespace redislock::detail
