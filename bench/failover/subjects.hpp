/// @file
/// Those who lock and unlock all the time, and what they see of a fail-over.
#pragma once

#include "failover/deployment.hpp"
#include "own_process.hpp"

#include <redislock/redislock.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <mutex>
#include <span>

namespace redislock::bench {

/// When somebody got a lock. Thread-safe.
class Successes {
public:
    void add(Time at)
    {
        const std::scoped_lock lock(mutex_);
        times_.push_back(at);
    }
    void addError(const std::string& what)
    {
        if (errors++ == 0) {
            fmt::print(stderr, "  the first call that failed: {}\n", what);
        }
    }
    /// The first one at this time or later; Time{}: none.
    [[nodiscard]] Time firstFrom(Time from) const
    {
        const std::scoped_lock lock(mutex_);
        const auto found = std::ranges::lower_bound(times_, from);
        return found == times_.end() ? Time{} : *found;
    }
    /// The longest time between two in a row, of which the second is after @p from. @return its end, and its length
    [[nodiscard]] std::pair<Time, Seconds> longestGap(Time from) const
    {
        const std::scoped_lock lock(mutex_);
        std::pair<Time, Seconds> longest{};
        for (std::size_t i = 1; i < times_.size(); ++i) {
            if (const Seconds gap = times_[i] - times_[i - 1]; times_[i] > from && gap > longest.second) {
                longest = {times_[i], gap};
            }
        }
        return longest;
    }

    std::atomic<int> errors{0}; ///< calls that failed

private:
    mutable std::mutex mutex_;
    std::vector<Time> times_;
};

/// What becomes of locks that are only held.
class Verdicts : public Observer {
public:
    explicit Verdicts(std::size_t held) : verdicts_(held) {}

    std::atomic<bool> isWatching{false};
    Moment movedAt{};  ///< when the commands' connection was made last
    Moment judgedAt{}; ///< when the last of them was renewed or lost after the renewals' connection was made anew
    std::atomic<int> lostCount{0};

    void renewed(const LockEvent& event, std::chrono::nanoseconds) noexcept override { judge(event, Verdict::kept); }
    void lost(const LockEvent& event, LossReason) noexcept override { judge(event, Verdict::lost); }
    void connected(std::string_view purpose) noexcept override
    {
        if (isWatching && purpose == "commands") {
            movedAt = Clock::now();
        } else if (isWatching && purpose == "renewals") { // what the other server said counts no more
            std::ranges::replace(verdicts_, Verdict::kept, Verdict::none);
            missing_ = std::ranges::count(verdicts_, Verdict::none);
            judgedAt = Time{};
        }
    }

private:
    enum class Verdict : std::uint8_t { none, kept, lost };

    void judge(const LockEvent& event, Verdict verdict) noexcept
    {
        if (isWatching && event.name.starts_with(heldPrefix)) {
            auto& its = verdicts_.at(std::stoul(std::string(event.name.substr(heldPrefix.size()))));
            lostCount += verdict == Verdict::lost ? 1 : 0;
            if (std::exchange(its, verdict) == Verdict::none && --missing_ == 0) {
                judgedAt = Clock::now();
            }
        }
    }

    std::vector<Verdict> verdicts_; // of the client's thread, as all that follows
    std::ptrdiff_t missing_ = std::ssize(verdicts_);
};

/// This library: one thread that locks and unlocks, and locks that are only held.
class Ours {
public:
    /// @param isApart whether the held locks belong to a client of their own, which does nothing else
    Ours(const Config& config, std::size_t held, bool isApart, std::chrono::milliseconds wait)
        : verdicts(std::make_shared<Verdicts>(held)),
          moves(isApart ? std::make_shared<Verdicts>(0) : verdicts),
          client_(observed(config, moves))
    {
        if (isApart) {
            holder_.emplace(observed(config, verdicts));
        }
        loop_ = std::jthread([this, held, wait](const std::stop_token& stop) { lockAndUnlock(held, wait, stop); });
    }

    Successes successes;
    const std::shared_ptr<Verdicts> verdicts; ///< on the held locks
    const std::shared_ptr<Verdicts> moves;    ///< of the client that locks and unlocks

private:
    static Config observed(Config config, std::shared_ptr<Observer> observer)
    {
        config.observer = std::move(observer);
        return config;
    }
    void lockAndUnlock(std::size_t held, std::chrono::milliseconds wait, const std::stop_token& stop)
    {
        std::vector<LockGuard> guards;
        for (std::size_t i = 0; i < held; ++i) {
            guards.emplace_back((holder_ ? *holder_ : client_).getLock(fmt::format("{}{}", heldPrefix, i)));
        }
        for (int round = 0; !stop.stop_requested(); ++round) {
            try {
                const auto lock = client_.getLock(fmt::format("{}:ours:{}", tag, round));
                if (lock.tryLock(wait, std::chrono::seconds(2))) {
                    successes.add(Clock::now());
                    if (const auto how = lock.unlock(); how != Unlocked::released) {
                        successes.addError(fmt::format("unlock: {}", toString(how)));
                    }
                } else {
                    successes.addError("tryLock: false");
                }
            } catch (const std::exception& error) {
                successes.addError(error.what());
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        (holder_ ? *holder_ : client_).shutdown(std::chrono::milliseconds(0)); // nobody waits for the guards' releases
    }

    Client client_;
    std::optional<Client> holder_;
    std::jthread loop_; // ends first
};

/// Redisson, in a process of its own for all rounds.
class RedissonLoop {
public:
    /// @param library the folder with the driver and what it needs
    explicit RedissonLoop(const std::string& library)
        : process_({"-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", library + "/*", "FailOver"},
                   "java"),
          listener_([this] { listen(); })
    {
    }
    RedissonLoop(const RedissonLoop&) = delete;
    RedissonLoop& operator=(const RedissonLoop&) = delete;
    ~RedissonLoop() { process_.signal(SIGTERM); }

    /// Connects anew: by Sentinels, or to one server if there is one port, or to a cluster. @return what it sees from
    /// now on.
    std::shared_ptr<const Successes> begin(std::string_view kind, const std::vector<std::uint16_t>& ports)
    {
        const std::scoped_lock lock(mutex_);
        successes_ = std::make_shared<Successes>();
        say(fmt::format("begin {} {} {}\n", ++round_, kind, fmt::join(ports, " ")));
        return successes_;
    }
    void end() const { say("end\n"); }

private:
    void say(const std::string& line) const { process_.write(std::as_bytes(std::span(line))); }
    /// Lines of `<round> <nanoseconds of the monotonic clock>`, or `<round> error <what>`.
    void listen()
    {
        std::array<char, 4096> bytes{};
        std::string text;
        while (const auto count = process_.read(std::as_writable_bytes(std::span(bytes)))) {
            text.append(bytes.data(), count);
            for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
                const auto word = text.find(' ') + 1;
                const auto what = text.substr(word, end - word);
                const std::scoped_lock lock(mutex_);
                if (std::stoi(text) != round_) {
                    // a call of an earlier round has come to its end
                } else if (what.starts_with("error")) {
                    successes_->addError(what);
                } else {
                    successes_->add(Time(std::chrono::nanoseconds(std::stoll(what))));
                }
                text.erase(0, end + 1);
            }
        }
    }

    OwnProcess process_;
    std::mutex mutex_;
    int round_ = 0;
    std::shared_ptr<Successes> successes_ = std::make_shared<Successes>();
    std::jthread listener_;
};

} // namespace redislock::bench
