/// @file
/// The rows of the table.
#pragma once

#include "measurement.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::bench {

/// The server that both sides use.
struct Target {
    std::string host;
    std::uint16_t port;
    std::string url;
    bool tryOut = false; ///< only to check that the row can be measured

    /// How many locks a row uses that is meant for @p whole locks.
    [[nodiscard]] std::size_t many(std::size_t whole) const { return tryOut ? whole / 50 : whole; }
    /// The lease that a row uses that is meant for the lease @p whole.
    [[nodiscard]] std::chrono::milliseconds lease(std::chrono::milliseconds whole) const
    {
        return tryOut ? std::chrono::seconds(1) : whole;
    }
};

/// The rows of one picture.
enum class Group {
    uncontended,
    tls,
    durable,
    cluster,
    handOver,
    contended,
    shared,
    policies,
    segmented,
    scale,
    compile
};
inline constexpr Group allGroups[] = {Group::uncontended, Group::tls,       Group::durable, Group::cluster,
                                      Group::handOver,    Group::contended, Group::shared,  Group::policies,
                                      Group::segmented,   Group::scale,     Group::compile};
std::string_view nameOf(Group group);

/// Which ratios are good.
enum class Aim { atLeast, atMost };

/// When a row is measured.
enum class Asked {
    always, ///< measured by a run without options
    byName, ///< measured only when it is named: it takes minutes, one measurement is enough, and there is no warm-up
};

struct Row {
    std::string_view name;
    Group group;
    std::string_view unit;
    Aim aim;
    double goal;    ///< for the median of ours / reference; 0: none
    double stretch; ///< a further goal; 0: none
    std::string_view what;
    std::function<Measure(const Target&)> prepare;
    Asked asked = Asked::always;
};

const std::vector<Row>& allRows();

/// Whether @p ratio reaches @p bound.
inline bool reaches(const Row& row, double ratio, double bound)
{
    return row.aim == Aim::atLeast ? ratio >= bound : ratio <= bound;
}

// The measurements of the rows. Each prepares both sides: connections are made before anything is measured.

/// Pairs of lock() and unlock(), every thread with its own name, against a raw connection per thread.
Measure lockAndUnlock(const Target& target, unsigned threads);
/// Pairs of making and destroying a LockGuard, every thread with its own name, against a raw connection per thread.
Measure lockGuard(const Target& target, unsigned threads);
/// The same, against one raw connection with @p threads requests under way.
Measure lockGuardAgainstPipeline(const Target& target, unsigned threads);
/// Pairs of asyncLock() and asyncRelease(), with @p underWay calls under way, against the same raw connection.
Measure asynchronous(const Target& target, unsigned underWay);
/// The median of lock() and unlock() while the client holds @p held other locks with fixed leases, against none.
Measure besideHeldLocks(const Target& target, std::size_t held);

/// Pairs of lock() and unlock() over TLS, one thread, against OpenSSL by hand.
Measure lockOverTls(const Target& target);
/// The same, every thread with its own name, against the same without TLS.
Measure lockOverTlsAgainstPlain(const Target& target, unsigned threads);
/// OpenSSL by hand against raw hiredis without TLS.
Measure rawLockOverTls(const Target& target);
/// From nothing to the first lock over TLS, against the same without TLS.
Measure firstLockOverTls(const Target& target);
/// Memory of each connection over TLS, against one without.
Measure memoryOfTls(const Target& target);
Measure durableLock(const Target& target);
Measure durableLocks(const Target& target, unsigned threads);

/// Pairs of lock() and unlock() over a cluster of @p nodes masters, every thread with its own name, against the same
/// over one server.
Measure lockInCluster(const Target& target, std::size_t nodes, unsigned threads);
/// Pairs of asyncLock() and asyncRelease() over a cluster of one node, against the same over one server.
Measure asynchronousInCluster(const Target& target, unsigned underWay);
/// unlock() called in one process until lock() returns in the other, over a cluster of one node, against the same over
/// one server.
Measure handOverInCluster(const Target& target);
/// Processor time of client and servers for the renewals of @p locks locks over all slots of three masters, against the
/// same over one server.
Measure renewalsInCluster(const Target& target, std::size_t locks, std::chrono::milliseconds lease);
/// Memory that a client of a cluster of one node has more than one of one server, against the allowed value.
Measure memoryInCluster(const Target& target);
/// The most connections of a client to a node while it locks, renews and waits everywhere, against the allowed number.
Measure connectionsInCluster(const Target& target);

/// unlock() called on one thread until lock() returns on the other, against PING.
Measure handOverBetweenThreads(const Target& target);
/// unlock() called in one process until lock() returns in the other, against PING.
Measure handOverBetweenProcesses(const Target& target);
/// The same for a FairLock, against a script that writes the next holder and publishes it to a waiting thread.
Measure handOverOfFairLock(const Target& target);
/// The other process of the row above: takes and gives back the lock each time a byte arrives on standard input.
void runPartner(const std::string& url, const std::string& kind, const std::string& lockName);

/// How often one lock that all threads want changes its holder, against SET NX PX and a sleep of 20 ms.
Measure changesOfHolder(const Target& target, unsigned threads);
/// The same against a lock between threads that needs no server.
Measure handOversInside(const Target& target, unsigned threads);
/// The same against the number @p asked.
Measure changesPerSecond(const Target& target, unsigned threads, double asked);
/// Requests to the server while all threads want one lock, against acquisitions.
Measure commandsPerAcquisition(const Target& target, unsigned threads);
/// The longest wait for one lock that all threads want, against the mean wait.
Measure longestWait(const Target& target, unsigned threads);

/// Processes that want one lock all the time.
struct Sharing {
    unsigned processes;
    unsigned threads;                  ///< of each process
    std::chrono::microseconds section; ///< time asleep under the lock
    std::string_view form;             ///< how they take the lock: see runSharer()
    std::chrono::microseconds delay{}; ///< of the link to the server, each way
    bool listener = false;             ///< somebody listens to the lock's channel, and never asks for the lock
    std::chrono::microseconds pause{}; ///< of the last process' threads, after each lock
};
enum class SharedFigure {
    locks,       ///< a second
    changes,     ///< of process, a second
    longestWait, ///< of any thread, in ms
    leastServed, ///< locks of the process with the fewest, against the mean
    requests,    ///< to the server, for each lock
};
/// How the processes share the lock, against the allowed value.
Measure sharing(const Target& target, const Sharing& how, SharedFigure figure, double allowed);
/// How the processes share the lock, against how they share it in another way.
Measure sharingOtherwise(const Target& target, const Sharing& how, SharedFigure figure, const Sharing& otherwise);
/// The slowest 1 % of the hand-overs of a plain lock between two processes that hold it for a random time around
/// @p section, against those of a fair lock.
Measure slowHandOvers(const Target& target, std::chrono::microseconds section);

/// Locks a second of a SegmentedLock that all threads want, each time for another key, against one segment.
Measure segmented(const Target& target, std::size_t segments, unsigned threads);

/// Threads of the client that holds @p locks locks, against the allowed number.
Measure threadsOfHeldLocks(const Target& target, std::size_t locks);
/// Bytes of memory for each held lock beyond its name, against the allowed number.
Measure bytesOfHeldLocks(const Target& target, std::size_t locks);
enum class CostOf : std::uint8_t { cores, requests };
/// The cost of the renewals of @p locks locks: milliseconds of processor time of client and server, or requests, in a
/// second, against the value that is allowed for 10 000 locks.
Measure costOfHeldLocks(const Target& target, std::size_t locks, std::chrono::milliseconds lease, CostOf what);
/// Locks that were renewed each time before they were at risk, against all.
Measure renewedInTime(const Target& target, std::size_t locks, std::chrono::milliseconds lease);
/// How late the latest 1 % of all renewals were, against a thirtieth of the lease.
Measure latenessOfRenewals(const Target& target, std::size_t locks, std::chrono::milliseconds lease);

/// The mean time from one holder to the next while @p waiters asynchronous calls of one client wait for one name,
/// against PING.
Measure waitersOfOneName(const Target& target, std::size_t waiters);
/// The median time from an unlock by another client to the grant, while one call waits for each of @p names names,
/// against PING.
Measure waitersOfManyNames(const Target& target, std::size_t names);
/// Bytes of memory in use after @p count pairs of lock() and unlock(), against the memory after the first few.
Measure cycles(const Target& target, std::size_t count);

/// The time of the requests of one hand-over of a fair lock with @p waiters waiters, against @p few waiters.
Measure fairQueue(const Target& target, std::size_t waiters, std::size_t few);

/// The time from a writer's release until the last of @p readers threads of another client reads, against PING; both
/// over a link that takes @p delay each way; the writer does not use the link.
Measure wakingReaders(const Target& target, unsigned readers, std::chrono::microseconds delay);

/// The compiler's time for the library's header alone, against that for one header of Asio.
Measure compileTime(const Target& target);

/// The size of the README's program, against its ceiling.
Measure programSize(const Target& target);

} // namespace redislock::bench
