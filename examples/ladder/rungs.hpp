/// @file
/// The locks of the ladder, as people write them, and the failure that each lock meets.
#pragma once

#include "ladder/journal.hpp"
#include "shared/shop.hpp"

#include <redislock/redislock.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace ladder {

using example::Shop;

constexpr std::chrono::seconds timeToLive{1}; ///< of the naive locks: the shortest time that EXPIRE allows
constexpr std::chrono::milliseconds longer{1600};
constexpr std::chrono::seconds lease{2}; ///< of the library's locks, which are renewed every third of it
constexpr std::chrono::milliseconds longerThanLease{2800};

/// A moment in a purchase.
enum class Point {
    selling,         ///< the stock was read, and is not written yet
    betweenCommands, ///< the lock was taken, and has no time to live yet
    beforeDelete,    ///< the buyer saw that the lock is its own, and has not deleted it yet
};
enum class Fault {
    killed,
    stopped,
    slow, ///< the buyer works for longer
};
/// What happens to a buyer, at which moment of which purchase. Buyers and purchases are counted from 1.
struct Trouble {
    Fault fault;
    Point point;
    int buyer;
    int purchase;
    std::chrono::milliseconds time{}; ///< how long the buyer is stopped or works
};

/// The trouble of one buyer. The buyer's process stops itself at the moment of the trouble; another process kills or
/// resumes it.
class Fate {
public:
    Fate(const std::vector<Trouble>& troubles, Journal& journal, int buyer)
        : troubles_(troubles), journal_(journal), buyer_(buyer)
    {
    }
    void nextPurchase() noexcept { ++purchase_; }
    void reach(Point point) const
    {
        const auto here = std::ranges::find_if(troubles_, [&](const Trouble& trouble) {
            return trouble.buyer == buyer_ && trouble.purchase == purchase_ && trouble.point == point;
        });
        if (here == troubles_.end()) {
            return;
        }
        if (here->fault == Fault::slow) {
            journal_.note(buyer_, Kind::slow);
            std::this_thread::sleep_for(here->time);
        } else {
            std::raise(SIGSTOP);
        }
    }

private:
    const std::vector<Trouble>& troubles_;
    Journal& journal_;
    const int buyer_;
    int purchase_ = 0;
};

/// The lock with which one buyer keeps the others out.
class Lock {
public:
    virtual ~Lock() = default;
    /// Waits until the buyer has the lock, as far as it knows.
    virtual void take() = 0;
    /// Whether the buyer still has the lock, as far as it can know.
    [[nodiscard]] virtual bool isOurs() const { return true; }
    /// @return whether the sale was written.
    virtual bool sell(Shop& shop, long long left, const std::string& buyer)
    {
        shop.setStock(left);
        shop.recordSale(buyer);
        return true;
    }
    /// @return whether it deleted a lock that was not the buyer's.
    virtual bool giveBack() = 0;
};

class NoLock : public Lock {
public:
    void take() override {}
    bool giveBack() override { return false; }
};

/// A lock of one key, in four variants.
class NaiveLock : public Lock {
public:
    enum class How { setnx, setnxExpire, setNxEx, compare, script };

    NaiveLock(How how, Shop& shop, Fate& fate, int buyer)
        : how_(how), shop_(shop), fate_(fate), owner_(fmt::format("buyer {}", buyer + 1))
    {
    }
    void take() override
    {
        while (!tryTake()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        if (how_ == How::setnxExpire) {
            fate_.reach(Point::betweenCommands);
            shop_.command({"EXPIRE", shop_.lockName(), std::to_string(timeToLive.count())});
        }
    }
    bool giveBack() override
    {
        if (how_ == How::script) {
            shop_.command({"EVAL",
                           "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end "
                           "return 0",
                           "1", shop_.lockName(), owner_});
            return false;
        }
        if (how_ == How::compare) {
            const auto value = shop_.command({"GET", shop_.lockName()});
            if (value->str == nullptr || value->str != owner_) {
                return false;
            }
            fate_.reach(Point::beforeDelete);
        }
        // a plain DEL, except that it returns what it deleted
        const auto deleted =
            shop_.command({"EVAL", "local value = redis.call('get', KEYS[1]) redis.call('del', KEYS[1]) return value",
                           "1", shop_.lockName()});
        return deleted->str != nullptr && deleted->str != owner_;
    }

private:
    bool tryTake()
    {
        const std::string& name = shop_.lockName();
        if (how_ == How::setnx || how_ == How::setnxExpire) {
            return shop_.command({"SETNX", name, owner_})->integer == 1;
        }
        const auto seconds = std::to_string(timeToLive.count());
        return shop_.command({"SET", name, owner_, "NX", "EX", seconds})->type == REDIS_REPLY_STATUS;
    }

    const How how_;
    Shop& shop_;
    Fate& fate_;
    const std::string owner_; ///< the value of the key; a rung that deletes without a check needs none
};

/// A lock of the library; the last rung's sales carry its token.
template <class Kind>
class GuardedLock : public Lock {
public:
    explicit GuardedLock(Kind lock) : lock_(std::move(lock)) {}
    void take() override { held_ = redislock::LockGuard(lock_); }
    [[nodiscard]] bool isOurs() const override { return static_cast<bool>(held_); }
    bool sell(Shop& shop, long long left, const std::string& buyer) override
    {
        if constexpr (std::is_same_v<Kind, redislock::FencedLock>) {
            return shop.sellWith(*held_.token(), left, buyer);
        }
        return Lock::sell(shop, left, buyer);
    }
    bool giveBack() override
    {
        held_.release();
        return false;
    }

private:
    Kind lock_;
    redislock::LockGuard held_;
};

/// One rung: a lock and its trouble.
struct Rung {
    std::string_view name;
    std::string_view trouble;  ///< what happens, in a sentence
    std::string_view lesson;   ///< what a spectator sees of it
    std::vector<Trouble> what; ///< empty: several buyers are enough
    bool isExact;              ///< still sells exactly the stock
    std::function<std::unique_ptr<Lock>(Shop&, Fate&, const redislock::Client&, int buyer)> make;
};

inline std::vector<Rung> allRungs()
{
    const auto naive = [](NaiveLock::How how) {
        return [how](Shop& shop, Fate& fate, const redislock::Client&, int buyer) {
            return std::make_unique<NaiveLock>(how, shop, fate, buyer);
        };
    };
    const auto redisLock = [](Shop& shop, Fate&, const redislock::Client& client, int) {
        return std::make_unique<GuardedLock<redislock::RedisLock>>(client.getLock(shop.lockName()));
    };
    const auto fencedLock = [](Shop& shop, Fate&, const redislock::Client& client, int) {
        return std::make_unique<GuardedLock<redislock::FencedLock>>(client.getFencedLock(shop.lockName()));
    };
    using How = NaiveLock::How;
    return {
        {"none",
         "Four buyers sell at once.",
         "They read the same number, and sell the same piece.",
         {},
         false,
         [](auto&&...) { return std::make_unique<NoLock>(); }},
        {"SETNX, DEL",
         "A buyer is killed while it holds the lock.",
         "Nobody deletes its lock, so nobody can sell any more.",
         {{Fault::killed, Point::selling, 0, 3}},
         false,
         naive(How::setnx)},
        {"SETNX, EXPIRE",
         "A buyer is killed between the two commands.",
         "Its lock has no time to live, so nobody can sell any more.",
         {{Fault::killed, Point::betweenCommands, 0, 3}},
         false,
         naive(How::setnxExpire)},
        {"SET NX EX",
         "A buyer's work takes longer than the time to live.",
         "The next buyer sells at the same time. Then the slow one deletes a lock that is not its own, and lets in "
         "another.",
         {{Fault::slow, Point::selling, 0, 3, longer}},
         false,
         naive(How::setNxEx)},
        {"GET, compare, DEL",
         "A buyer is stopped between GET and DEL.",
         "By then the lock that it deletes belongs to another, and two sell at once.",
         {{Fault::stopped, Point::beforeDelete, 0, 3, longer}},
         false,
         naive(How::compare)},
        {"compare in Lua",
         "A buyer's work takes longer than the time to live.",
         "It deletes only its own lock, but the next buyer still sells at the same time.",
         {{Fault::slow, Point::selling, 0, 3, longer}},
         false,
         naive(How::script)},
        {"RedisLock",
         "One buyer works for longer than the lease; another is killed while it holds the lock.",
         "The lease is renewed while the work goes on, and ends soon after the crash.",
         {{Fault::slow, Point::selling, 0, 3, longerThanLease}, {Fault::killed, Point::selling, 1, 5}},
         true,
         redisLock},
        {"RedisLock: its limit",
         "A buyer is stopped for longer than its lease, after it checked the lock for the last time.",
         "A stopped process renews nothing. When it goes on, it overwrites what others sold.",
         {{Fault::stopped, Point::selling, 0, 3, longerThanLease}},
         false,
         redisLock},
        {"FencedLock",
         "The same: a buyer is stopped for longer than its lease.",
         "Its late sale is refused, because a buyer with a greater token has sold since.",
         {{Fault::stopped, Point::selling, 0, 3, longerThanLease}},
         true,
         fencedLock},
    };
}

} // namespace ladder
