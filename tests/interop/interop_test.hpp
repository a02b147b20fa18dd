/// @file
/// What the tests of both languages share: a server, Redisson clients, names of their own.
#pragma once

#include "interop/kinds.hpp"
#include "interop/peer.hpp"
#include "redislock/client.hpp"
#include "redislock/config.hpp"
#include "redislock/lock.hpp"
#include "redislock/testing/redis_server.hpp"
#include "support/raw_redis.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::test {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// The bound of what should come at once; far below `longLease`, so that it did not come because a lease was over.
inline constexpr milliseconds soon{5000};
/// The lease of locks that are to stay until they are unlocked.
inline constexpr milliseconds longLease{60'000};
/// How long the renewed leases of both languages are.
inline constexpr milliseconds watchdogTimeout{1000};
/// How many servers there are.
inline constexpr std::size_t servers = 3;

/// A text with {} replaced by the name of a test's object: `{}:a,{}:b` are two locks of its own.
std::string filledIn(std::string_view text, const std::string& name);

/// Three servers, two processes of ours and, for each version of Redisson, two of Java, for all tests of one program.
/// After each test its names must be gone from Redis.
class InteropTest : public ::testing::Test {
protected:
    /// @param which 0; 1 and 2 for groups on several servers
    static testing::RedisServer& server(std::size_t which = 0);
    /// One of the processes of a version, or of ours where that is empty, started when first asked for. @param which 0
    /// or 1
    static Peer& peer(const std::string& redisson, std::size_t which = 0);
    /// What a process that is a test's own is started with.
    static PeerOptions peerOptions(const std::string& redisson);

    void TearDown() override;

    /// A name for this test alone. @param prefix for example a hash tag
    std::string uniqueName(std::string_view prefix = {});

    /// Nobody of these tests is woken by the poll.
    static Config config();

    /// Returns when somebody listens to a channel that has to do with @p name.
    void awaitListener(const std::string& name);
    /// Returns when so many processes listen to a channel.
    void awaitListeners(const std::string& channel, std::int64_t count);
    /// Returns when somebody, after a subscription where there is one, asked for @p name again: whatever comes next is
    /// no answer to a question. @param monitor sent MONITOR before that began. @param subscribes whether to that name:
    /// who waits for several locks may listen at another
    static void awaitQuestion(RawRedis& monitor, const std::string& name, bool subscribes);
    /// Has all that is kept with a name deleted after the test: of objects that stay.
    std::string lastingName();
    /// Deletes a name and what Redisson keeps with it: of objects that are never gone by themselves.
    void removeAllOf(const std::string& name);
    /// The value of the field of a lock's hash that belongs to a client; empty when there is none.
    std::string countOf(const std::string& name, const std::string& clientId);

    RawRedis raw{server()};

private:
    std::vector<std::string> names_;
    std::vector<std::string> lastingNames_;
};

/// The fixture of what is not about one kind of lock.
class RedissonInterop : public InteropTest, public ::testing::WithParamInterface<std::string> {
protected:
    /// An object of Redisson, for a Java thread of its own.
    [[nodiscard]] static PeerObject javaObject(std::string_view kind, std::string name)
    {
        return {peer(GetParam()), kind, std::move(name)};
    }
};

/// Which language comes first: holds, where the other waits; or waits, where that tells it.
struct Sides {
    std::string redisson;
    bool javaFirst;

    friend std::ostream& operator<<(std::ostream& out, const Sides& sides)
    {
        return out << (sides.javaFirst ? "Java first, Redisson " : "C++ first, Redisson ") << sides.redisson;
    }
};

/// Both orders with every version.
std::vector<Sides> allSides();
/// `JavaFirst_Redisson4_7_0`
std::string sidesName(const ::testing::TestParamInfo<Sides>& info);

/// The fixture of what is told to processes of both languages alike, in either order.
class SidesInterop : public InteropTest, public ::testing::WithParamInterface<Sides> {
protected:
    /// An object of the language that comes first, for a thread of its own. @param which process of it, 0 or 1
    [[nodiscard]] static PeerObject first(std::string_view kind, const std::string& name, std::size_t which = 0)
    {
        return {peer(GetParam().javaFirst ? GetParam().redisson : "", which), kind, name};
    }
    /// The same of the other language.
    [[nodiscard]] static PeerObject second(std::string_view kind, const std::string& name, std::size_t which = 0)
    {
        return {peer(GetParam().javaFirst ? "" : GetParam().redisson, which), kind, name};
    }
};

/// A kind of lock against a version of Redisson.
struct LockCase {
    LockKind kind;
    std::string redisson;

    friend std::ostream& operator<<(std::ostream& out, const LockCase& what)
    {
        return out << what.kind.name << " with Redisson " << what.redisson;
    }
};

/// Every kind that is @p wanted with every version that has it.
std::vector<LockCase> lockCases(bool (*wanted)(const LockKind&) = [](const LockKind&) { return true; });
/// `RedisLock_Redisson4_7_0`
std::string lockCaseName(const ::testing::TestParamInfo<LockCase>& info);

/// The fixture of what holds for all kinds of lock.
class LockInterop : public InteropTest, public ::testing::WithParamInterface<LockCase> {
protected:
    [[nodiscard]] const LockKind& kind() const { return GetParam().kind; }
    [[nodiscard]] Lock make(const Client& from, const std::string& name) const { return kind().make(from, name); }
    [[nodiscard]] Lock make(const std::string& name) const { return make(client, name); }
    /// The same lock in Java, for a Java thread of its own.
    [[nodiscard]] PeerObject javaLock(const std::string& name, std::size_t which = 0) const
    {
        return {peer(GetParam().redisson, which), kind().java, name};
    }
    /// The UUID of a Java process.
    [[nodiscard]] const std::string& javaId(std::size_t which = 0) const
    {
        return peer(GetParam().redisson, which).id();
    }

    /// Runs @p start, which has somebody wait for the lock, and returns when only its end can let him in.
    template <class Function>
    auto awaitWaiter(const std::string& name, Function start)
    {
        RawRedis monitor(server());
        monitor.command({"MONITOR"});
        auto result = start();
        awaitQuestion(monitor, name, kind().told);
        return result;
    }

    Client client{config()};
};

} // namespace redislock::test
