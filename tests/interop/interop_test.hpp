/// @file
/// The common parts of the tests of both languages: a server, Redisson clients, names of their own.
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

/// The bound for things that should happen at once; far below `longLease`, so that they did not happen because a lease
/// ended.
inline constexpr milliseconds soon{5000};
/// The lease of locks that are held until they are unlocked.
inline constexpr milliseconds longLease{60'000};
/// How long the renewed leases of both languages are.
inline constexpr milliseconds watchdogTimeout{1000};
/// How many servers there are.
inline constexpr std::size_t servers = 3;

/// The text with {} replaced by the name of a test's object: `{}:a,{}:b` are two locks of the test.
std::string filledIn(std::string_view text, const std::string& name);

/// Three servers, two processes of ours and, for each version of Redisson, two of Java, for all tests of one program.
/// After each test its names must be gone from Redis.
class InteropTest : public ::testing::Test {
protected:
    /// @param which 0; 1 and 2 for groups on several servers
    static testing::RedisServer& server(std::size_t which = 0);
    /// One of the processes of a version, or of ours if the version is empty; the first call starts the process.
    /// @param which 0 or 1
    static Peer& peer(const std::string& redisson, std::size_t which = 0);
    /// The options for starting a process of a single test.
    static PeerOptions peerOptions(const std::string& redisson);

    void TearDown() override;

    /// A name for this test alone. @param prefix for example a hash tag
    std::string uniqueName(std::string_view prefix = {});

    /// Settings with which the poll wakes no waiter of these tests.
    static Config config();

    /// Returns when a client listens to a channel whose name contains @p name.
    void awaitListener(const std::string& name);
    /// Returns when @p count processes listen to a channel.
    void awaitListeners(const std::string& channel, std::int64_t count);
    /// Returns when a waiter, after its subscription if there is one, has asked for @p name again: from then on it only
    /// waits. @param monitor a connection that sent MONITOR before the wait began.
    /// @param subscribes whether the waiter subscribes for that name: a waiter for several locks may listen for another
    static void awaitQuestion(RawRedis& monitor, const std::string& name, bool subscribes);
    /// A name whose keys are deleted after the test, for objects that stay.
    std::string lastingName();
    /// Deletes a name and Redisson's keys for it, for objects that never end by themselves.
    void removeAllOf(const std::string& name);
    /// The value of the field of a lock's hash that belongs to a client; empty when there is none.
    std::string countOf(const std::string& name, const std::string& clientId);

    RawRedis raw{server()};

private:
    std::vector<std::string> names_;
    std::vector<std::string> lastingNames_;
};

/// The fixture of tests that are not about one kind of lock.
class RedissonInterop : public InteropTest, public ::testing::WithParamInterface<std::string> {
protected:
    /// An object of Redisson, for a Java thread of its own.
    [[nodiscard]] static PeerObject javaObject(std::string_view kind, std::string name)
    {
        return {peer(GetParam()), kind, std::move(name)};
    }
};

/// Which language comes first: it holds while the other waits, or it waits for the other's message.
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

/// The fixture of tests that give processes of both languages the same commands, in either order.
class SidesInterop : public InteropTest, public ::testing::WithParamInterface<Sides> {
protected:
    /// An object of the language that comes first, for a thread of its own.
    /// @param which process of that language, 0 or 1
    [[nodiscard]] static PeerObject first(std::string_view kind, const std::string& name, std::size_t which = 0)
    {
        return {peer(GetParam().javaFirst ? GetParam().redisson : "", which), kind, name};
    }
    /// The same for the other language.
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

/// Every kind that is @p wanted, with every version that has the kind.
std::vector<LockCase> lockCases(bool (*wanted)(const LockKind&) = [](const LockKind&) { return true; });
/// `RedisLock_Redisson4_7_0`
std::string lockCaseName(const ::testing::TestParamInfo<LockCase>& info);

/// The fixture of tests for all kinds of lock.
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

    /// Runs @p start, which starts a waiter for the lock; returns when only the end of the hold can let the waiter in.
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
