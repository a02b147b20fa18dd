/// @file
/// Processes of both languages under load on one object, their reports, and samples of Redis meanwhile.
#pragma once

#include "interop/load/slot_mover.hpp"
#include "interop/load/turns.hpp"
#include "interop/peer.hpp"
#include "interop/queue_watch.hpp"
#include "redislock/testing/redis_server.hpp"
#include "support/raw_redis.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace redislock::test {

/// The object that the processes want.
struct LoadKind {
    std::string name; ///< as the drivers call it
    int since = 3;    ///< the first major version of Redisson that has it
    std::size_t permits = 1;
    std::string ours = "load"; ///< the object
    std::string theirs = "load";
};

/// The size of the load.
struct FleetSize {
    std::size_t processes = 2; ///< of ours, and of each version of Redisson
    std::size_t threads = 2;
    int hold = 1;           ///< ms inside
    int pause = 6;          ///< the longest of the random pauses, in ms
    std::string redisson{}; ///< the only version; empty: all
    bool isMixed = true;    ///< otherwise as many processes of Redisson's alone: the measure of what it does to itself
    std::optional<std::uint64_t> moves{}; ///< in a cluster, whose moves have this seed; otherwise on three servers
};

/// How long renewed leases are, and leases of permits.
inline constexpr std::chrono::seconds fleetLease{10};
/// How long a waiter keeps its place in a fair queue: five polls of ours, the allowance of Redisson's.
inline constexpr std::chrono::seconds fleetPlace{5};

/// A process, and all its successors after kills.
struct Berth {
    std::string redisson; ///< empty: ours
    std::unique_ptr<Peer> peer{};
    std::map<std::string, Turn> inside{};
    std::map<std::string, std::size_t> last{}; ///< turn of a thread
    std::set<std::string> working{};           ///< threads
    std::size_t kills = 0;
};

/// Thread safety: unsafe; the processes die with the thread that made it.
class Fleet {
public:
    Fleet(LoadKind kind, const FleetSize& size);

    /// Reads the reports, and looks into Redis when that is due.
    void watch();
    /// Ends a process as a crash would, and starts another in its place.
    void kill(std::size_t berth);
    /// Ends all threads, and judges the remaining keys. A thread that has not ended in time is a violation.
    void end();

    [[nodiscard]] std::size_t berths() const noexcept { return berths_.size(); }
    [[nodiscard]] std::size_t turns() const noexcept { return turns_.size(); }
    [[nodiscard]] std::size_t kills() const noexcept { return killed_.size(); }
    [[nodiscard]] std::size_t violations() const noexcept { return violations_; }
    /// Of a cluster; otherwise null.
    [[nodiscard]] const SlotMover* mover() const noexcept { return mover_.get(); }
    /// Judges the turns; to be called once. @return the rows of the table, and the text below it
    std::string report();
    /// The first row of the table.
    static std::string heading();

private:
    void start(Berth& berth);
    [[nodiscard]] std::vector<std::string> urls(const Berth& berth) const;
    [[nodiscard]] RawRedis& redis() { return redis_[mover_ ? mover_->owner() : 0]; }
    [[nodiscard]] std::vector<RawRedis*> masters();
    void look();
    void lookAtOrder();
    void takeIn(std::size_t berth);
    void told(std::size_t berth, const std::string& thread, const Answer& line);
    void lookAtKeys();
    [[nodiscard]] bool mayLast(const std::string& key);
    void judgeWaits();
    [[nodiscard]] bool mayHaveNoGrant(const Turn& turn) const;
    void judgeRest();
    void giveBackPermits(std::size_t count, const std::string& why);
    void settlePermits();
    [[nodiscard]] std::size_t working() const;
    [[nodiscard]] std::string row(std::size_t first, std::optional<bool> reads) const;
    [[nodiscard]] Micros longestStandstill() const;
    [[nodiscard]] Micros mostAhead() const;
    [[nodiscard]] Micros costOfADeath() const;
    void takeOutTheDead();
    void violate(std::size_t berth, const std::string& what);
    [[nodiscard]] std::string nameOf(std::size_t berth) const;

    LoadKind kind_;
    FleetSize size_;
    std::vector<testing::RedisServer> servers_; ///< none in a cluster
    std::unique_ptr<SlotMover> mover_;
    std::vector<RawRedis> redis_; ///< of each server, or node
    std::vector<Berth> berths_;
    std::map<std::string, std::size_t> clients_; ///< UUIDs of live clients, and their berths
    std::vector<Turn> turns_;
    std::vector<Micros> killed_;
    QueueWatch queue_;
    std::size_t passed_ = 0;    ///< violations of the queue that were reported
    std::size_t outstayed_ = 0; ///< the same, of the dead
    bool toldOfTimes_ = false;
    std::optional<Micros> withoutRedisson_; ///< when its queue was seen with a waiter of Redisson's, or without a time
    std::size_t mayKeepRecords_ = 0;        ///< processes of ours that were killed
    std::size_t records_ = 0;               ///< the most records of requests
    std::size_t recordBound_ = 0;
    std::size_t owed_ = 0;        ///< permits of the dead, which are given back when the slot does not move
    std::size_t mayHaveHeld_ = 0; ///< threads that were killed between two turns: each may have had a permit
    Micros nextLook_{0};
    Micros lastIn_{0};
    bool ending_ = false;
    std::size_t violations_ = 0;
    std::map<std::size_t, std::size_t> violationsOf_;
    std::map<std::size_t, std::size_t> losses_;
    std::vector<std::string> remarks_;
};

} // namespace redislock::test
