/// @file
/// What Redisson's scripts do to a fair lock, step by step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redislock::test {

/// A fair lock as Redisson's threads use it. Each machine of Redisson's has a clock of its own, which it passes as ms
/// since 1970.
///
/// The class takes the steps of the scripts one by one, on a real server or on a model; no other client may come
/// between two steps.
class RedissonFairLock {
public:
    /// One command, whose answer is a number, a text or nil.
    using Command = std::function<std::optional<std::string>(const std::vector<std::string>&)>;

    static constexpr std::int64_t leaseMs = 30'000;
    static constexpr std::int64_t usualMs = 300'000; ///< fairLockWaitTimeout: the allowance of a waiter without a limit

    RedissonFairLock(const std::string& name, Command command)
        : name_(name),
          queue_("redisson_lock_queue:{" + name + "}"),
          times_("redisson_lock_timeout:{" + name + "}"),
          channels_("redisson_lock__channel:{" + name + "}:"),
          command_(std::move(command))
    {
    }

    /// Takes the lock, or a place in the queue. @return nothing when the thread has it; otherwise the ms after which it
    /// asks again.
    std::optional<std::int64_t> acquire(const std::string& thread, std::int64_t allowanceMs, std::int64_t clock)
    {
        prune(clock);
        const auto left = number({"PTTL", name_}).value_or(-2);
        const auto head = first();
        if (left == -2 && (!head || *head == thread)) {
            leave(thread);
            move(allowanceMs, 0);
            command_({"HSET", name_, thread, "1"});
            renew();
            return std::nullopt;
        }
        if (number({"HEXISTS", name_, thread}) == 1) {
            return std::nullopt;
        }
        if (time(thread)) {
            return std::max<std::int64_t>(0, left);
        }
        const auto last = command_({"LINDEX", queue_, "-1"});
        const auto before = last ? time(*last) : std::nullopt;
        const std::int64_t ahead = before ? *before - clock : left;
        command_({"ZADD", times_, std::to_string(clock + ahead + allowanceMs), thread});
        command_({"RPUSH", queue_, thread});
        return ahead;
    }

    void renew() { command_({"PEXPIRE", name_, std::to_string(leaseMs)}); }

    /// Ends the wait of a thread.
    void giveUp(const std::string& thread, std::int64_t allowanceMs)
    {
        const auto waiters = waiting();
        const auto place = std::find(waiters.begin(), waiters.end(), thread);
        if (place != waiters.end()) {
            move(allowanceMs, static_cast<std::size_t>(place - waiters.begin()) + 1);
        }
        leave(thread);
    }

    /// Ends the hold of a thread and sends the message to the first in the queue.
    void release(const std::string& thread, std::int64_t clock)
    {
        prune(clock);
        if (number({"PTTL", name_}) != -2) {
            if (number({"HEXISTS", name_, thread}) != 1) {
                return;
            }
            command_({"DEL", name_});
        }
        if (const auto head = first()) {
            command_({"PUBLISH", channels_ + *head, "0"});
        }
    }

    /// Removes waiters from the head of the queue while their times are over by that clock; stops at a waiter without a
    /// time.
    void prune(std::int64_t clock)
    {
        for (auto head = first(); head && time(*head).value_or(clock + 1) <= clock; head = first()) {
            command_({"ZREM", times_, *head});
            command_({"LPOP", queue_});
        }
    }

    [[nodiscard]] std::vector<std::string> waiting() const
    {
        std::vector<std::string> all;
        while (auto next = command_({"LINDEX", queue_, std::to_string(all.size())})) {
            all.push_back(std::move(*next));
        }
        return all;
    }

    /// Until when a waiter has its place; nothing if it has none.
    [[nodiscard]] std::optional<std::int64_t> time(const std::string& waiter) const
    {
        const auto score = command_({"ZSCORE", times_, waiter});
        return score ? std::optional(static_cast<std::int64_t>(std::stod(*score))) : std::nullopt;
    }

private:
    [[nodiscard]] std::optional<std::int64_t> number(const std::vector<std::string>& words) const
    {
        const auto answer = command_(words);
        return answer ? std::optional<std::int64_t>(std::stoll(*answer)) : std::nullopt;
    }
    [[nodiscard]] std::optional<std::string> first() const { return command_({"LINDEX", queue_, "0"}); }

    void leave(const std::string& thread)
    {
        command_({"LREM", queue_, "0", thread});
        command_({"ZREM", times_, thread});
    }

    /// Subtracts an allowance from the times of all waiters from that place on.
    void move(std::int64_t allowanceMs, std::size_t from)
    {
        const auto waiters = waiting();
        for (std::size_t i = from; i < waiters.size(); ++i) {
            if (const auto until = time(waiters[i])) {
                command_({"ZADD", times_, std::to_string(*until - allowanceMs), waiters[i]});
            }
        }
    }

    std::string name_, queue_, times_, channels_;
    Command command_;
};

} // namespace redislock::test
