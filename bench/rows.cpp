#include "rows.hpp"

namespace redislock::bench {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<Row> uncontended()
{
    constexpr auto group = Group::uncontended;
    return {
        {"lock_unlock_1_thread", group, "/s", Aim::atLeast, 0.95, 1.1,
         "lock() and unlock(), 1 thread, nobody else wants the lock; against raw hiredis",
         [](const Target& target) { return lockAndUnlock(target, 1); }},
        {"lock_guard_1_thread", group, "/s", Aim::atLeast, 1.25, 1.5,
         "the same through a LockGuard, whose end does not wait for the answer; against raw hiredis, which does",
         [](const Target& target) { return lockGuard(target, 1); }},
        {"lock_unlock_8_threads", group, "/s", Aim::atLeast, 1.4, 1.6,
         "lock() and unlock(), 8 threads, 8 names, one Client; against a raw connection per thread",
         [](const Target& target) { return lockAndUnlock(target, 8); }},
        {"lock_unlock_64_threads", group, "/s", Aim::atLeast, 1.5, 1.9,
         "lock() and unlock(), 64 threads, 64 names, one Client; against a raw connection per thread",
         [](const Target& target) { return lockAndUnlock(target, 64); }},
        {"lock_guard_64_threads", group, "/s", Aim::atLeast, 0.7, 0.9,
         "LockGuard, 64 threads, 64 names, one Client; against raw hiredis pipelined by 64, the server's own limit",
         [](const Target& target) { return lockGuardAgainstPipeline(target, 64); }},
        {"asynchronous_64", group, "/s", Aim::atLeast, 0.6, 0.8,
         "asyncLock() and asyncRelease(), 64 under way; against raw hiredis pipelined by 64, the server's own limit",
         [](const Target& target) { return asynchronous(target, 64); }},
    };
}

#if REDISLOCK_WITH_TLS
std::vector<Row> tls()
{
    constexpr auto group = Group::tls;
    return {
        {"tls_lock_unlock_1_thread", group, "/s", Aim::atLeast, 1, 0,
         "lock() and unlock() over TLS, 1 thread, nobody else wants the lock; against OpenSSL on the descriptor by "
         "hand",
         lockOverTls},
        {"tls_against_plain_1_thread", group, "/s", Aim::atLeast, 0.75, 0, "the same; against the same without TLS",
         [](const Target& target) { return lockOverTlsAgainstPlain(target, 1); }},
        {"tls_against_plain_64_threads", group, "/s", Aim::atLeast, 0.85, 0,
         "lock() and unlock() over TLS, 64 threads, 64 names, one Client; against the same without TLS",
         [](const Target& target) { return lockOverTlsAgainstPlain(target, 64); }},
        {"tls_reference", group, "/s", Aim::atLeast, 0.75, 0,
         "OpenSSL on the descriptor by hand; against raw hiredis without TLS: what TLS costs by itself",
         rawLockOverTls},
        {"tls_first_lock", group, " ms", Aim::atMost, 0, 0,
         "from no client to the first lock over TLS, with a file of authorities, median; against the same without TLS",
         firstLockOverTls},
        {"tls_memory", group, " KiB", Aim::atMost, 0, 0,
         "memory of 32 clients that are connected over TLS, for each connection; against the same without TLS",
         memoryOfTls},
    };
}
#else
std::vector<Row> tls()
{
    return {};
}
#endif

std::vector<Row> durable()
{
    constexpr auto group = Group::durable;
    return {
        {"durable_1_thread", group, "/s", Aim::atLeast, 0.4, 0.55,
         "lock() with replicas(1) and unlock(), 1 thread; against raw hiredis with lock and WAIT in one packet",
         durableLock},
        {"durable_64_threads", group, "/s", Aim::atLeast, 0.5, 0.8,
         "lock() with replicas(1) and unlock(), 64 threads, 64 names, one Client; against the same without a "
         "durability",
         [](const Target& target) { return durableLocks(target, 64); }},
    };
}

std::vector<Row> cluster()
{
    constexpr auto group = Group::cluster;
    return {
        {"cluster_lock_unlock_1_thread", group, "/s", Aim::atLeast, 0.93, 0.97,
         "lock() and unlock(), 1 thread, a cluster of one node; against one server",
         [](const Target& target) { return lockInCluster(target, 1, 1); }},
        {"cluster_lock_unlock_64_threads", group, "/s", Aim::atLeast, 0.93, 0.97,
         "the same, 64 threads, 64 names, one Client",
         [](const Target& target) { return lockInCluster(target, 1, 64); }},
        {"cluster_asynchronous_64", group, "/s", Aim::atLeast, 0.93, 0.97,
         "asyncLock() and asyncRelease(), 64 under way, a cluster of one node; against one server",
         [](const Target& target) { return asynchronousInCluster(target, 64); }},
        {"cluster_three_nodes_64_threads", group, "/s", Aim::atLeast, 0, 0,
         "lock() and unlock(), 64 threads, names over the slots of three masters, one Client; against one server",
         [](const Target& target) { return lockInCluster(target, 3, 64); }},
        {"cluster_hand_over_processes", group, " µs", Aim::atMost, 1.1, 0,
         "unlock() called until lock() returns in a waiting process, a cluster of one node, median; against one server",
         handOverInCluster},
        {"cluster_renewals_10000", group, " ms", Aim::atMost, 4, 3,
         "10 000 locks over the slots of three masters, renewed each second: processor time of client and servers in "
         "a second; against one server",
         [](const Target& target) { return renewalsInCluster(target, target.many(10'000), target.lease(seconds(3))); }},
        {"cluster_memory", group, " KiB", Aim::atMost, 1, 0,
         "memory that a client of a cluster has more than one of one server; against 64 KiB allowed", memoryInCluster},
        {"cluster_connections", group, "", Aim::atMost, 1, 0,
         "the most connections to a node of a client that locks, renews and waits at all nodes; against 3 allowed",
         connectionsInCluster},
    };
}

std::vector<Row> handOver()
{
    constexpr auto group = Group::handOver;
    return {
        {"hand_over_threads", group, " µs", Aim::atMost, 0.3, 0,
         "unlock() called until lock() returns on a waiting thread of the same process, median; against PING",
         handOverBetweenThreads},
        {"hand_over_processes", group, " µs", Aim::atMost, 2.7, 1.5,
         "unlock() called until lock() returns in a waiting process, median; against PING", handOverBetweenProcesses},
        {"hand_over_fair", group, " µs", Aim::atMost, 1.25, 0,
         "the same of a FairLock; against a script that names the next holder, until a waiting thread has read that",
         handOverOfFairLock},
    };
}

std::vector<Row> contended()
{
    constexpr auto group = Group::contended;
    return {
        {"contended_changes", group, "/s", Aim::atLeast, 6, 50,
         "changes of holder, 32 threads, one lock, tiny section; against SET NX PX and a sleep of 20 ms",
         [](const Target& target) { return changesOfHolder(target, 32); }},
        {"passing_8", group, "/s", Aim::atLeast, 0.5, 0,
         "changes of holder, 8 threads of one client, one lock, nothing under it; against a mutex, a queue and futexes",
         [](const Target& target) { return handOversInside(target, 8); }},
        {"passing_8_changes", group, "/s", Aim::atLeast, 1, 0, "the same; against 40 000",
         [](const Target& target) { return changesPerSecond(target, 8, 40'000); }},
        {"passing_8_commands", group, "/s", Aim::atMost, 0.1, 0,
         "the same: requests to the server; against acquisitions",
         [](const Target& target) { return commandsPerAcquisition(target, 8); }},
        {"contended_commands", group, "/s", Aim::atMost, 2.2, 0,
         "the same: requests to the server; against acquisitions",
         [](const Target& target) { return commandsPerAcquisition(target, 32); }},
        {"contended_longest_wait", group, " µs", Aim::atMost, 5, 0, "the same: the longest wait; against the mean wait",
         [](const Target& target) { return longestWait(target, 32); }},
    };
}

std::vector<Row> shared()
{
    constexpr auto group = Group::shared;
    static constexpr std::chrono::microseconds section{200};
    static constexpr std::chrono::microseconds none{0};
    const auto row = [](std::string_view name, std::string_view unit, Aim aim, double goal, std::string_view what,
                        const Sharing& how, SharedFigure figure, double allowed) {
        return Row{name, group, unit, aim,
                   goal, 0,     what, [=](const Target& target) { return sharing(target, how, figure, allowed); }};
    };
    using Figure = SharedFigure;
    constexpr Sharing twos{4, 2, section, "lock"};
    constexpr Sharing ones{4, 1, section, "lock"};
    constexpr Sharing guards{4, 1, section, "guard"};
    constexpr Sharing bare{4, 2, none, "lock"};
    constexpr Sharing pausing{3, 1, section, "lock", {}, false, std::chrono::milliseconds(1)};
    constexpr Sharing far{4, 1, section, "lock", std::chrono::microseconds(2500)};
    const auto besideListener = [](std::string_view name, unsigned processes, std::string_view what) {
        const Sharing alone{processes, 1, section, "lock"};
        Sharing watched = alone;
        watched.listener = true;
        const auto prepare = [=](const Target& target) {
            return sharingOtherwise(target, watched, SharedFigure::locks, alone);
        };
        return Row{name, group, "/s", Aim::atLeast, 0.95, 0, what, prepare};
    };
    const auto slow = [](std::string_view name, std::chrono::milliseconds held, std::string_view what) {
        return Row{name,         group, " µs", Aim::atMost,
                   2.5,          0,     what,  [=](const Target& target) { return slowHandOvers(target, held); },
                   Asked::byName};
    };
    using std::chrono::milliseconds;
    return {
        row("shared_4x2_longest_wait", " ms", Aim::atMost, 1,
            "4 processes of 2 threads want one lock all the time, 0.2 ms under it: the longest wait; against 25 ms",
            twos, Figure::longestWait, 25),
        row("shared_4x2_least_served", "", Aim::atLeast, 0.9,
            "the same: locks of the process that had the fewest; against the mean", twos, Figure::leastServed, 1),
        row("shared_4x2_changes", "/s", Aim::atLeast, 1, "the same: changes of process; against 700", twos,
            Figure::changes, 700),
        row("shared_4x2_requests", "", Aim::atMost, 1, "the same: requests to the server a lock; against 4", twos,
            Figure::requests, 4),
        row("shared_4x2_locks", "/s", Aim::atLeast, 0,
            "the same: locks; against 5 000, as many as go one after another", twos, Figure::locks, 5000),
        row("shared_4x1_longest_wait", " ms", Aim::atMost, 1,
            "4 processes of 1 thread: the longest wait; against 25 ms", ones, Figure::longestWait, 25),
        row("shared_4x1_least_served", "", Aim::atLeast, 0.9,
            "the same: locks of the process that had the fewest; against the mean", ones, Figure::leastServed, 1),
        row("shared_4x1_changes", "/s", Aim::atLeast, 1, "the same: changes of process; against 700", ones,
            Figure::changes, 700),
        row("shared_4x1_requests", "", Aim::atMost, 1, "the same: requests to the server a lock; against 5", ones,
            Figure::requests, 5),
        row("shared_4x1_locks", "/s", Aim::atLeast, 0,
            "the same: locks; against 5 000, as many as go one after another", ones, Figure::locks, 5000),
        row("shared_guards_longest_wait", " ms", Aim::atMost, 1,
            "4 processes of 1 thread, by LockGuard: the longest wait; against 25 ms", guards, Figure::longestWait, 25),
        row("shared_guards_least_served", "", Aim::atLeast, 0.9,
            "the same: locks of the process that had the fewest; against the mean", guards, Figure::leastServed, 1),
        row("shared_guards_locks", "/s", Aim::atLeast, 0,
            "the same: locks; against 5 000, as many as go one after another", guards, Figure::locks, 5000),
        row("shared_bare_longest_wait", " ms", Aim::atMost, 1,
            "4 processes of 2 threads, nothing under the lock: the longest wait; against 25 ms", bare,
            Figure::longestWait, 25),
        row("shared_bare_locks", "/s", Aim::atLeast, 0, "the same: locks; against 5 000", bare, Figure::locks, 5000),
        row("shared_2x1_locks", "/s", Aim::atLeast, 0, "2 processes of 1 thread, 0.2 ms: locks; against 5 000",
            {2, 1, section, "lock"}, Figure::locks, 5000),
        row("shared_2x2_locks", "/s", Aim::atLeast, 0, "2 processes of 2 threads, 0.2 ms: locks; against 5 000",
            {2, 2, section, "lock"}, Figure::locks, 5000),
        row("shared_pausing_longest_wait", " ms", Aim::atMost, 1,
            "3 processes of 1 thread, 0.2 ms, one of which pauses for 1 ms after each lock: the longest wait; against "
            "25 ms",
            pausing, Figure::longestWait, 25),
        row("shared_pausing_least_served", "", Aim::atLeast, 0.5,
            "the same: locks of the process that had the fewest; against the mean", pausing, Figure::leastServed, 1),
        row("shared_5ms_longest_wait", " ms", Aim::atMost, 1,
            "2 processes of 1 thread, 5 ms under the lock: the longest wait; against 25 ms",
            {2, 1, std::chrono::milliseconds(5), "lock"}, Figure::longestWait, 25),
        row("shared_50ms_longest_wait", " ms", Aim::atMost, 1,
            "4 processes of 1 thread, 50 ms under the lock: the longest wait; against 500 ms",
            {4, 1, std::chrono::milliseconds(50), "lock"}, Figure::longestWait, 500),
        row("shared_far_longest_wait", " ms", Aim::atMost, 1,
            "4 processes of 1 thread, 0.2 ms, 2.5 ms from the server: the longest wait; against 200 ms", far,
            Figure::longestWait, 200),
        row("shared_far_least_served", "", Aim::atLeast, 0.9,
            "the same: locks of the process that had the fewest; against the mean", far, Figure::leastServed, 1),
        besideListener("shared_1x1_listener", 1,
                       "1 process of 1 thread, 0.2 ms, beside a listener that never asks: locks; against none"),
        besideListener("shared_2x1_listener", 2, "2 processes"),
        besideListener("shared_4x1_listener", 4, "4 processes"),
        slow(
            "shared_3ms_hand_over", milliseconds(3),
            "2 processes take a plain lock in turns, 2 to 4 ms under it: the 99th percentile of the time from unlock() "
            "to the other's lock(); against a fair lock"),
        slow("shared_15ms_hand_over", milliseconds(15), "the same with 10 to 20 ms"),
        slow("shared_30ms_hand_over", milliseconds(30), "the same with 20 to 40 ms"),
        slow("shared_75ms_hand_over", milliseconds(75), "the same with 50 to 100 ms"),
    };
}

std::vector<Row> policies()
{
    static constexpr std::chrono::milliseconds section{1};
    const auto row = [](std::string_view name, std::string_view form, SharedFigure figure, std::string_view unit,
                        std::string_view what) {
        const Sharing how{4, 4, section, form};
        const Sharing told{4, 4, section, "lock"};
        const auto prepare = [=](const Target& target) { return sharingOtherwise(target, how, figure, told); };
        return Row{name, Group::policies, unit, Aim::atLeast, 0, 0, what, prepare};
    };
    using Figure = SharedFigure;
    return {
        row("policy_sleep_locks", "sleep", Figure::locks, "/s",
            "4 processes of 4 threads want one lock all the time, 1 ms under it; who is refused sleeps 10 ms: locks; "
            "against waiters that are told"),
        row("policy_sleep_requests", "sleep", Figure::requests, "", "the same: requests to the server a lock"),
        row("policy_spin_locks", "spin", Figure::locks, "/s", "who is refused asks again at once: locks"),
        row("policy_spin_requests", "spin", Figure::requests, "", "the same: requests to the server a lock"),
        row("policy_both_locks", "both", Figure::locks, "/s",
            "who is refused asks again at once 10 times, then sleeps 10 ms: locks"),
        row("policy_both_requests", "both", Figure::requests, "", "the same: requests to the server a lock"),
    };
}

std::vector<Row> segments()
{
    constexpr auto group = Group::segmented;
    constexpr unsigned threads = 32;
    return {
        {"segmented_1", group, "/s", Aim::atLeast, 0, 0,
         "a SegmentedLock of 1 segment, 32 threads, random keys, 50 µs asleep under the lock; against the same: noise",
         [](const Target& target) { return segmented(target, 1, threads); }},
        {"segmented_4", group, "/s", Aim::atLeast, 2, 0, "the same with 4 segments; against 1",
         [](const Target& target) { return segmented(target, 4, threads); }},
        {"segmented_16", group, "/s", Aim::atLeast, 3, 0, "the same with 16 segments; against 1",
         [](const Target& target) { return segmented(target, 16, threads); }},
        {"segmented_64", group, "/s", Aim::atLeast, 4, 6, "the same with 64 segments; against 1",
         [](const Target& target) { return segmented(target, 64, threads); }},
    };
}

std::vector<Row> scale()
{
    constexpr auto group = Group::scale;
    constexpr std::size_t tenThousand = 10'000;
    constexpr std::size_t hundredThousand = 100'000;
    constexpr std::size_t million = 1'000'000;
    return {
        {"held_10000_in_time", group, "", Aim::atLeast, 1, 0,
         "10 000 locks of one client, renewed each second: never at risk; against all of them",
         [](const Target& target) {
             return renewedInTime(target, target.many(tenThousand), target.lease(seconds(3)));
         }},
        {"held_10000_lateness", group, " ms", Aim::atMost, 1, 0,
         "the same: how late the latest 1 % of the renewals are; against a thirtieth of the lease",
         [](const Target& target) {
             return latenessOfRenewals(target, target.many(tenThousand), target.lease(seconds(3)));
         }},
        {"held_10000_cores", group, " ms", Aim::atMost, 1, 0,
         "the same: processor time of client and server in a second; against 80 ms allowed",
         [](const Target& target) {
             return costOfHeldLocks(target, target.many(tenThousand), target.lease(seconds(3)), CostOf::cores);
         }},
        {"held_10000_requests", group, "", Aim::atMost, 1, 0, "the same: requests a second; against 200 allowed",
         [](const Target& target) {
             return costOfHeldLocks(target, target.many(tenThousand), target.lease(seconds(3)), CostOf::requests);
         }},
        {"held_10000_threads", group, "", Aim::atMost, 1, 0,
         "10 000 held locks: threads of the client; against 2 allowed",
         [](const Target& target) { return threadsOfHeldLocks(target, target.many(tenThousand)); }},
        {"held_10000_bytes", group, " B", Aim::atMost, 1, 0,
         "10 000 held locks: bytes a lock beyond its name; against 400 allowed",
         [](const Target& target) { return bytesOfHeldLocks(target, target.many(tenThousand)); }},
        {"beside_100000_held", group, " µs", Aim::atMost, 1.1, 1.02,
         "lock() and unlock() while 100 000 others are held with fixed leases, median; against none",
         [](const Target& target) { return besideHeldLocks(target, target.many(hundredThousand)); }},
        {"fair_queue_10000", group, " µs", Aim::atMost, 1.5, 0,
         "a hand-over of a fair lock for which 10 000 wait: its three requests; against 10 who wait",
         [](const Target& target) { return fairQueue(target, target.many(tenThousand), 10); }},
        {"readers_200", group, " µs", Aim::atMost, 2, 0,
         "200 threads wait to read, 5 ms each way: from a writer's unlock() at the server until the last reads; "
         "against PING",
         [](const Target& target) { return wakingReaders(target, 200, milliseconds(5)); }},
        {"readers_200_loopback", group, " µs", Aim::atLeast, 0, 0, "the same without the way; against PING",
         [](const Target& target) { return wakingReaders(target, 200, milliseconds(0)); }},
        {"held_100000_in_time", group, "", Aim::atLeast, 1, 0,
         "100 000 locks of one client, renewed every ten seconds: never at risk; against all of them",
         [](const Target& target) {
             return renewedInTime(target, target.many(hundredThousand), target.lease(seconds(30)));
         },
         Asked::byName},
        {"held_100000_lateness", group, " ms", Aim::atMost, 1, 0,
         "the same: how late the latest 1 % of the renewals are; against a thirtieth of the lease",
         [](const Target& target) {
             return latenessOfRenewals(target, target.many(hundredThousand), target.lease(seconds(30)));
         },
         Asked::byName},
        {"held_100000_bytes", group, " B", Aim::atMost, 1, 0,
         "100 000 held locks: bytes a lock beyond its name; against 400 allowed",
         [](const Target& target) { return bytesOfHeldLocks(target, target.many(hundredThousand)); }, Asked::byName},
        {"waiters_1000_one_name", group, " µs", Aim::atMost, 2.5, 0,
         "1 000 asynchronous waiters on one name: mean time from one holder to the next; against PING",
         [](const Target& target) { return waitersOfOneName(target, target.many(1000)); }, Asked::byName},
        {"waiters_10000_names", group, " µs", Aim::atMost, 2.7, 0,
         "a waiter on each of 10 000 names: unlock by another client until the grant, median; against PING",
         [](const Target& target) { return waitersOfManyNames(target, target.many(tenThousand)); }, Asked::byName},
        {"cycles_1000000", group, " kB", Aim::atMost, 1.05, 0,
         "memory in use after 1 000 000 pairs of lock() and unlock() of ever new names; against after 10 000",
         [](const Target& target) { return cycles(target, target.many(million)); }, Asked::byName},
    };
}

std::vector<Row> compile()
{
    return {
        {"compile_header", Group::compile, " ms", Aim::atMost, 1.6, 1.3,
         "the compiler's time for redislock/redislock.hpp alone, -O0; against boost/asio/any_completion_handler.hpp",
         compileTime},
        {"program_size", Group::compile, " KiB", Aim::atMost, 1, 0.72,
         "the README's program, stripped, with the library as it was built; against the ceiling of 700 KiB",
         programSize},
    };
}

} // namespace

const std::vector<Row>& allRows()
{
    static const std::vector<Row> rows = [] {
        std::vector<Row> all;
        for (const auto& part : {uncontended(), tls(), durable(), cluster(), handOver(), contended(), shared(),
                                 policies(), segments(), scale(), compile()}) {
            all.insert(all.end(), part.begin(), part.end());
        }
        return all;
    }();
    return rows;
}

std::string_view nameOf(Group group)
{
    switch (group) {
    case Group::uncontended:
        return "uncontended";
    case Group::tls:
        return "tls";
    case Group::durable:
        return "durable";
    case Group::cluster:
        return "cluster";
    case Group::handOver:
        return "hand_over";
    case Group::contended:
        return "contended";
    case Group::shared:
        return "shared";
    case Group::policies:
        return "policies";
    case Group::segmented:
        return "segmented";
    case Group::scale:
        return "scale";
    case Group::compile:
        break;
    }
    return "compile";
}

} // namespace redislock::bench
