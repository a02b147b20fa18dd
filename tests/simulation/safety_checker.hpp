/// @file
/// Checks that certain things never happen.
#pragma once

#include "simulation/keyspace.hpp"
#include "simulation/request.hpp"
#include "simulation/scheduler.hpp"
#include "simulation/witness.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace redislock::simulation {

/// A rule of the failure catalogue was broken.
class Violation : public std::runtime_error {
public:
    Violation(std::string_view rule, const std::string& what) : std::runtime_error(std::string(rule) + ": " + what) {}
};

/// A believer and its lock.
struct Claim {
    std::string name;
    std::string holder;
    std::string thread{};  ///< two holds of one thread may exist at the same time
    bool isShared = false; ///< beside other shared holds
};

/// Watches the beliefs of clients and the actions of the server. Unlike any client, it sees both at once.
///
/// When others take a lock away (a restart without data, a foreign DEL), the holds concerned are excused from mutual
/// exclusion and from being true in Redis, but from nothing else.
class SafetyChecker : public Witness {
public:
    explicit SafetyChecker(const Keyspace& keyspace) noexcept : keyspace_(keyspace) {}

    /// From now on a client believes that it holds a lock until @p until (S1, S2, S3, S9, S10). Called again with a
    /// later time when the hold was renewed.
    void believes(const Claim& claim, VirtualTime now, VirtualTime until);
    /// The owner passed a hold on inside the client, which had made @p requests requests by then: the holder goes on,
    /// and the hold has another owner (S5, S6, S9).
    void passes(const std::string& name, const std::string& holder, std::uint64_t requests, VirtualTime now);
    /// The belief ends for good: the hold was released or lost, or its process is gone.
    void ends(const std::string& name, const std::string& holder);
    /// Whether the holder's lock was taken away from outside.
    [[nodiscard]] bool isExcused(const std::string& holder) const { return excused_.contains(holder); }

    /// The lock is about to be taken away from outside: from one holder, from the holders of a key, from all.
    void excuseHolder(const std::string& holder) { excused_.insert(holder); }
    /// The server grants it the lock anew.
    void accept(const std::string& holder) { excused_.erase(holder); }
    void excuse(const std::string& name);
    void excuseAll();
    /// The server lacks the last requests of a holder, which other servers answered: it has the lock, but perhaps not
    /// as long as the holder believes, nor with its count.
    void lags(const std::string& holder)
    {
        lagging_.insert(holder);
        disordered_.insert(holder);
    }
    /// From now on the server has it for as long as the holder believes.
    void catchesUp(const std::string& holder) { lagging_.erase(holder); }
    /// A server that does not have the holder's lock said so, and it is not the one that counts.
    void deniedElsewhere(const std::string& holder) { releasedByCopy_.insert(holder); }
    [[nodiscard]] bool isLagging(const std::string& holder) const { return lagging_.contains(holder); }
    /// Until when a client believes in the holder's lock; zero: it does not.
    [[nodiscard]] VirtualTime believedUntil(const std::string& name, const std::string& holder) const;
    /// The key's time to live was taken away from outside.
    void persisted(const std::string& name) { persisted_.insert(name); }

    /// A copy of a request, which the network made, is about to be executed.
    void copied(const Request& request) override;
    /// Called before and after each request that the server executes (S2, S4, S5, R4).
    void before(const Request& request, VirtualTime now) override;
    void after(const Request& request, const Reply& reply, VirtualTime now) override;

    /// Expects the server to have the lock for that holder with that count, unless copies of older requests changed it
    /// (S6).
    void expectCount(const std::string& name, const std::string& holder, std::uint32_t count, VirtualTime now) const;
    /// Expects the token that a hold got with a level to be the hold's own (S4).
    void expectToken(const std::string& holder, std::uint64_t has, std::uint64_t got) const;
    /// Expects the server not to have the lock for that holder, unless copies of older requests took it again.
    void expectGone(const std::string& name, const std::string& holder, VirtualTime now) const;
    /// A client got the answer that a hold is gone though its time was not over.
    void toldGone(const std::string& holder, const char* by) const;

    /// A renewal is being requested (S9, T2).
    void renews(const std::string& holder) const;

    /// Whether the holder of the last executed request had the lock before that request.
    [[nodiscard]] bool hadIt(const Request& request) const;
    /// The waiter of a fair lock to which the last executed request passed the lock. Empty: to nobody.
    [[nodiscard]] const std::string& passedTo() const noexcept { return passedTo_; }
    [[nodiscard]] std::size_t believers(const std::string& name, VirtualTime now) const;

private:
    struct Belief {
        Claim claim;
        VirtualTime until;
    };

    void beforeOne(const Request& request, VirtualTime now);
    void afterOne(const Request& request, const Reply& reply, VirtualTime now);
    void checkLate(const Request& request) const;
    void checkTruth(const Belief& belief, VirtualTime now) const;
    void checkChange(const Request& request, const Keyspace::Key* key) const;
    [[nodiscard]] bool grants(const Request& request, const Keyspace::Key& key) const;
    void checkTimesToLive(const Request& request) const;
    void checkReaders(const Request& request, const Reply& reply, VirtualTime now) const;
    void checkToken(const Request& request, const Reply& reply);

    const Keyspace& keyspace_;
    std::map<std::string, std::vector<Belief>> beliefs_;
    std::unordered_set<std::string> over_;
    std::unordered_map<std::string, std::uint64_t> passedAt_; ///< by holder: the last request before it was passed on
    bool isCopy_ = false;                                     ///< the next request is a copy
    std::unordered_set<std::string> excused_;
    std::unordered_set<std::string> lagging_;
    std::unordered_set<std::string> persisted_; ///< names
    std::unordered_map<std::string, std::uint64_t>
        latest_;                                     ///< by holder: the number of its latest request that was executed
    std::unordered_set<std::string> releasedByCopy_; ///< their release finds nothing, without a fault of the library
    std::unordered_set<std::string>
        disordered_; ///< holders whose requests were not executed in their order, or not all by this server
    std::unordered_map<std::string, std::uint64_t> tokens_;        ///< by name: the last
    std::vector<Request> parts_;                                   ///< of the present request, one for each lock
    std::vector<std::optional<Keyspace::Key>> keysBefore_;         ///< for each of them
    std::optional<Keyspace::Key> keyBefore_;                       ///< for the present lock of the request
    std::vector<std::pair<std::string, std::string>> queueBefore_; ///< of a fair lock: waiters, with empty values
    std::string passedTo_;
};

/// The time of the server's clock in milliseconds.
constexpr std::int64_t millisecondOf(VirtualTime now) noexcept
{
    return now.count() / 1'000'000;
}

} // namespace redislock::simulation
