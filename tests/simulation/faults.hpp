/// @file
/// The faults, how often they happen, and what they hit.
#pragma once

#include "redislock/random.hpp"
#include "simulation/scheduler.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redislock::simulation {

enum class Fault : std::uint8_t {
    requestLost,    ///< and all later requests on that connection
    requestLate,    ///< perhaps long after its connection was closed
    requestDoubled, ///< a copy is executed a second time, later
    replyLost,      ///< and all later replies on that connection
    replyLate,
    replyDoubled,
    messageLost, ///< of publish/subscribe
    connectLost, ///< no answer to an attempt to connect
    connectionCut,
    clientPaused,
    clientCrashed,
    serverPaused,
    serverRestarted,
    serverRestartedEmpty,
    scriptsForgotten,
    outOfMemory,
    notEnoughReplicas,
    readOnly,
    keyDeleted,   ///< by other programs
    keyPersisted, ///< by other programs
};
inline constexpr std::size_t faultCount = 20;

inline constexpr std::array<std::string_view, faultCount> faultNames{
    "request lost",  "request late",     "request doubled",
    "reply lost",    "reply late",       "reply doubled",
    "message lost",  "connect lost",     "cut",
    "client paused", "client crashed",   "server paused",
    "restarted",     "restarted empty",  "scripts forgotten",
    "out of memory", "too few replicas", "read-only",
    "key deleted",   "key persisted",
};

/// The state of a machine at the moment of a fault.
enum class Situation : std::uint8_t {
    acquireAsking,
    acquireWaiting,
    acquireBackingOff,
    nestedAsking,
    nestedBackingOff,
    releaseAsking,
    releaseBackingOff,
    renewalSleeping,
    renewalAsking,
    queryAsking,
    queryBackingOff,
};
inline constexpr std::size_t situationCount = 11;

inline constexpr std::array<std::string_view, situationCount> situationNames{
    "acquire asking",     "acquire waiting", "acquire backing off", "nested asking",
    "nested backing off", "release asking",  "release backing off", "renewal sleeping",
    "renewal asking",     "query asking",    "query backing off",
};

/// Why a fault cannot hit a machine in that state; empty when it can.
constexpr std::string_view impossible(Fault fault, Situation situation) noexcept
{
    const bool asking = situation == Situation::acquireAsking || situation == Situation::nestedAsking ||
                        situation == Situation::releaseAsking || situation == Situation::renewalAsking ||
                        situation == Situation::queryAsking;
    if (fault <= Fault::replyDoubled && !asking) {
        return "no request of it is under way";
    }
    const bool waits = situation <= Situation::acquireBackingOff;
    if (fault == Fault::messageLost && !waits) {
        return "it listens to no channel";
    }
    const bool sleeps = situation == Situation::nestedBackingOff || situation == Situation::releaseBackingOff ||
                        situation == Situation::renewalSleeping || situation == Situation::queryBackingOff;
    if (fault == Fault::connectLost && sleeps) {
        return "it needs no connection";
    }
    const bool holds = situation != Situation::queryAsking && situation != Situation::queryBackingOff;
    if ((fault == Fault::keyDeleted || fault == Fault::keyPersisted) && !holds) {
        return "it is about no hold";
    }
    return {};
}

/// How often each fault happens in one run: drawn anew for each seed, so that there are runs with one kind of fault,
/// with many kinds and with none.
class FaultPlan {
public:
    explicit FaultPlan(Random& chance)
    {
        for (auto& rate : rates_) {
            constexpr double widest = 8; // the ratio of the largest rate to the smallest
            rate = chance.unit() < 0.6 ? (1 + chance.unit() * (widest - 1)) / widest : 0;
        }
    }

    /// From now on that fault never comes.
    void without(Fault fault) noexcept { rates_[static_cast<std::size_t>(fault)] = 0; }

    /// For a fault of messages: whether this message is hit.
    [[nodiscard]] bool hits(Fault fault, Random& chance) const
    {
        constexpr double mostOften = 0.012;
        return rates_[static_cast<std::size_t>(fault)] > 0 &&
               chance.unit() < rates_[static_cast<std::size_t>(fault)] * mostOften;
    }

    /// For a fault that comes by itself: the time to the next one; zero if it never comes.
    [[nodiscard]] VirtualTime pause(Fault fault, Random& chance) const
    {
        const double rate = rates_[static_cast<std::size_t>(fault)];
        if (rate == 0) {
            return VirtualTime{0};
        }
        const double shortestMean = fault == Fault::scriptsForgotten ? 1e8 : 1e9; // that fault costs only a round trip
        return VirtualTime(1 + static_cast<std::int64_t>(shortestMean / rate * 2 * chance.unit()));
    }

private:
    std::array<double, faultCount> rates_{};
};

inline constexpr std::size_t kindCount = 7;

/// In the order of detail::LockKind.
inline constexpr std::array<std::string_view, kindCount> kindNames{
    "RedisLock", "NonReentrantLock", "SpinLock", "FencedLock", "FairLock", "ReadLock", "WriteLock",
};

/// What happens in runs with replicas, or what a fail-over meets.
enum class ReplicaEvent : std::uint8_t {
    failOver,
    laggingChosen,    ///< the new master lacked something
    formerLives,      ///< the former master went on answering
    formerGrants,     ///< and granted a lock
    duringConfirming, ///< replicas were being asked for a grant
    duringPause,      ///< an acquire paused after a grant that was not durable
    durableHold,      ///< one that all replicas were to have was held
    lostGrant,        ///< a hold was believed in that the new master lacked
    lostRenewal,      ///< the new master had a hold for a shorter time than was believed
    lostRelease,      ///< the new master had a hold that was over
    told,             ///< a caller was told of a durable level
    notDurable,       ///< or that it cannot be had
    passedOn,         ///< a durable hold was inherited
};
inline constexpr std::size_t replicaEventCount = 13;
inline constexpr std::array<std::string_view, replicaEventCount> replicaEventNames{
    "fail-overs",
    "to a replica that lagged",
    "from a master that lived on",
    "grants of such a master",
    "during a confirmation",
    "during a pause",
    "durable holds at fail-overs",
    "grants lost",
    "renewals lost",
    "releases lost",
    "durable grants told",
    "refused as not durable",
    "durable holds inherited",
};

/// The counts of one run, or of many.
struct Statistics {
    std::array<std::array<std::uint64_t, situationCount>, faultCount> hits{};
    std::array<std::uint64_t, kindCount> held{}; ///< how often each kind was held
    std::array<std::uint64_t, replicaEventCount> replicas{};
    std::uint64_t faults = 0;
    std::uint64_t operations = 0; ///< calls of clients that ended
    std::uint64_t grants = 0;
    std::uint64_t handOvers = 0; ///< grants to another client than the one before
    std::uint64_t passings = 0;  ///< holds that were passed on inside a client
    std::uint64_t events = 0;

    void add(const Statistics& other) noexcept
    {
        for (std::size_t i = 0; i < faultCount; ++i) {
            for (std::size_t j = 0; j < situationCount; ++j) {
                hits[i][j] += other.hits[i][j];
            }
        }
        for (std::size_t i = 0; i < kindCount; ++i) {
            held[i] += other.held[i];
        }
        for (std::size_t i = 0; i < replicaEventCount; ++i) {
            replicas[i] += other.replicas[i];
        }
        faults += other.faults;
        operations += other.operations;
        grants += other.grants;
        handOvers += other.handOvers;
        passings += other.passings;
        events += other.events;
    }
};

} // namespace redislock::simulation
