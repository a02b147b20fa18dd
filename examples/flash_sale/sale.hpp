/// @file
/// The sale in Redis: stock, answers and the stream of admitted orders.
#pragma once

#include "flash_sale/settings.hpp"
#include "shared/shop.hpp"

#include <redislock/redislock.hpp>

#include <fmt/format.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace flash {

/// The service's answer to a buyer.
struct Answer {
    std::string text; ///< accepted, sold out, already bought, closed, or not yours
    bool isRepeated;  ///< the order had this answer before
};

/// An admitted order, as a worker gets it.
struct Order {
    std::string entry; ///< its place in the stream
    std::string id;
    std::string user;
};

/// What a worker reports about itself.
struct Activity {
    int holds = 0;
    int waiters = 0;
};

/// The figures of one moment.
struct Snapshot {
    long long left;
    long long holds; ///< of all workers
    long long waiters;
    long long claimed;
    long long refused;
    std::string verdict; ///< in JSON; "null" as long as the sale goes on
};

/// One connection to Redis. Every thread has its own. All keys expire by themselves.
class Sale {
public:
    explicit Sale(const Settings& settings)
        : prefix_(settings.sale), shop_(redislock::Config::fromUrl(settings.url), prefix_)
    {
    }

    /// Puts the stock on sale.
    void open(int stock)
    {
        shop_.command({"XGROUP", "CREATE", streamKey_, group, "$", "MKSTREAM"});
        shop_.command({"EXPIRE", streamKey_, lifetime});
        shop_.open(stock);
    }
    [[nodiscard]] long long stock() { return shop_.stock(); }
    void setStock(long long units) { shop_.setStock(units); }

    /// Answers an order: the first request decides; a repeated request gets the same answer.
    Answer admit(std::string_view id, std::string_view user)
    {
        // KEYS: answer, users who have bought, stock, stream. ARGV: order, user, seconds. A script is one atomic step.
        constexpr std::string_view script = R"(
            local known = redis.call('get', KEYS[1])
            if known then
                local user, answer = string.match(known, '^(%d+) (.*)$')
                return {user == ARGV[2] and answer or 'not yours', 1}
            end
            local stock, answer = redis.call('get', KEYS[3]), 'sold out'
            if not stock then return {'closed', 0} end
            if redis.call('exists', KEYS[2]) == 1 then
                answer = 'already bought'
            elseif tonumber(stock) > 0 then
                redis.call('decr', KEYS[3])
                redis.call('set', KEYS[2], ARGV[1], 'ex', ARGV[3])
                redis.call('xadd', KEYS[4], '*', 'order', ARGV[1], 'user', ARGV[2])
                answer = 'accepted'
            end
            redis.call('set', KEYS[1], ARGV[2] .. ' ' .. answer, 'ex', ARGV[3])
            return {answer, 0})";
        const auto reply = shop_.command({"EVAL", script, "4", fmt::format("{}answer:{}", prefix_, id),
                                          fmt::format("{}bought:{}", prefix_, user), prefix_ + "stock", streamKey_, id,
                                          user, lifetime});
        return {text(*element(*reply, 0)), element(*reply, 1)->integer == 1};
    }

    /// New orders for @p worker; waits a short time for the first.
    std::vector<Order> take(std::string_view worker)
    {
        const auto reply = shop_.command(
            {"XREADGROUP", "GROUP", group, worker, "COUNT", batch, "BLOCK", "100", "STREAMS", streamKey_, ">"});
        return reply->type == REDIS_REPLY_NIL ? std::vector<Order>() : orders(*element(*element(*reply, 0), 1));
    }
    /// Orders that a worker took a while ago and has not finished. That worker may be dead, or only slow: the lock and
    /// its token make it safe to try again.
    std::vector<Order> claim(std::string_view worker)
    {
        const auto reply = shop_.command({"XAUTOCLAIM", streamKey_, group, worker, claimAfterMs, "0", "COUNT", batch});
        const auto claimed = orders(*element(*reply, 1));
        if (!claimed.empty()) {
            count("claimed", claimed.size());
        }
        return claimed;
    }
    /// The order is in the database: no other worker needs to see it.
    void finish(const Order& order)
    {
        constexpr std::string_view script = R"(
            redis.call('xack', KEYS[1], ARGV[1], ARGV[2])
            return redis.call('xdel', KEYS[1], ARGV[2]))";
        shop_.command({"EVAL", script, "1", streamKey_, group, order.entry});
    }
    /// Admitted orders that are not finished.
    [[nodiscard]] long long unfinished() { return shop_.command({"XLEN", streamKey_})->integer; }
    /// Unfinished orders that a worker has taken; at most 100 are counted.
    [[nodiscard]] std::size_t underWay(std::string_view worker)
    {
        return shop_.command({"XPENDING", streamKey_, group, "-", "+", "100", worker})->elements;
    }
    /// Unfinished orders that any worker has taken.
    [[nodiscard]] long long pending() { return element(*shop_.command({"XPENDING", streamKey_, group}), 0)->integer; }

    /// Counts what happened, for the table at the end.
    void count(std::string_view what, std::size_t more = 1)
    {
        const auto key = fmt::format("{}count:{}", prefix_, what);
        shop_.command({"INCRBY", key, std::to_string(more)});
        shop_.command({"EXPIRE", key, lifetime});
    }
    [[nodiscard]] long long counted(std::string_view what) { return number(fmt::format("{}count:{}", prefix_, what)); }

    /// A dead worker reports nothing more, and is no longer counted a second later.
    void report(int worker, Activity activity)
    {
        shop_.command(
            {"SET", fmt::format("{}holds:{}", prefix_, worker), std::to_string(activity.holds), "PX", "1000"});
        shop_.command(
            {"SET", fmt::format("{}waiters:{}", prefix_, worker), std::to_string(activity.waiters), "PX", "1000"});
    }
    /// How the sale ended, for the page. @param json an object
    void conclude(std::string_view json) { shop_.command({"SET", prefix_ + "verdict", json, "EX", lifetime}); }
    /// All figures of one moment: a script is one atomic step.
    [[nodiscard]] Snapshot snapshot(int workers)
    {
        constexpr std::string_view script = R"(
            local function get(what) return tonumber(redis.call('get', ARGV[1] .. what) or 0) end
            local holds, waiters = 0, 0
            for worker = 0, ARGV[2] - 1 do
                holds, waiters = holds + get('holds:' .. worker), waiters + get('waiters:' .. worker)
            end
            return {get('stock'), holds, waiters, get('count:claimed'), get('count:refused'),
                redis.call('get', ARGV[1] .. 'verdict') or 'null'})";
        const auto reply = shop_.command({"EVAL", script, "0", prefix_, std::to_string(workers)});
        const auto figure = [&](std::size_t index) { return element(*reply, index)->integer; };
        return {figure(0), figure(1), figure(2), figure(3), figure(4), text(*element(*reply, 5))};
    }

    [[nodiscard]] std::string lockName(std::string_view user) const
    {
        return fmt::format("{}lock:order:{}", prefix_, user);
    }

    /// Gives the counters of the FencedLocks a time to live: no worker can be later than that. A FencedLock itself
    /// keeps its counter for ever.
    /// @return how many keys of the sale have no time to live even so
    long long expire()
    {
        constexpr std::string_view script = R"(
            local page, eternal = redis.call('scan', ARGV[1], 'match', ARGV[2], 'count', 1000), 0
            for _, key in ipairs(page[2]) do
                if redis.call('ttl', key) == -1 then
                    if string.find(key, 'redisson_lock_token:', 1, true) == 1 then
                        redis.call('expire', key, ARGV[3])
                    else
                        eternal = eternal + 1
                    end
                end
            end
            return {page[1], eternal})";
        long long eternal = 0;
        std::string cursor = "0";
        do {
            const auto page = shop_.command({"EVAL", script, "0", cursor, "*" + prefix_ + "*", lifetime});
            cursor = text(*element(*page, 0));
            eternal += element(*page, 1)->integer;
        } while (cursor != "0");
        return eternal;
    }

private:
    static constexpr std::string_view group = "workers";
    static constexpr std::string_view lifetime = "3600"; // seconds
    static constexpr std::string_view batch = "4";
    static constexpr std::string_view claimAfterMs = "600";

    static const redisReply* element(const redisReply& reply, std::size_t index)
    {
        if (reply.type != REDIS_REPLY_ARRAY || reply.elements <= index) {
            throw std::runtime_error("Redis answers in another form than expected: Redis 6.2 or newer is needed");
        }
        return reply.element[index];
    }
    static std::string text(const redisReply& reply) { return {reply.str, reply.len}; }
    static std::vector<Order> orders(const redisReply& entries)
    {
        std::vector<Order> result;
        for (std::size_t index = 0; index < entries.elements; ++index) {
            const auto& entry = *element(entries, index);
            const auto& fields = *element(entry, 1); // order, <id>, user, <number>
            result.push_back({text(*element(entry, 0)), text(*element(fields, 1)), text(*element(fields, 3))});
        }
        return result;
    }
    long long number(const std::string& key)
    {
        const auto reply = shop_.command({"GET", key});
        return reply->type == REDIS_REPLY_STRING ? std::stoll(text(*reply)) : 0;
    }

    std::string prefix_;
    std::string streamKey_ = prefix_ + "orders";
    example::Shop shop_;
};

} // namespace flash
