/// @file
/// How long a waiting process waits after the holder, another process, has called unlock().
#include "hand_over_processes.hpp"
#include "own_process.hpp"
#include "ping.hpp"
#include "reference/raw_connection.hpp"
#include "rows.hpp"
#include "statistics.hpp"

#include <redislock/redislock.hpp>

#include <atomic>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

namespace redislock::bench {

namespace {

constexpr char lockName[] = "bench:hand-over";

/// The lock of a kind, "plain" or "fair".
Lock lockOf(const Client& client, const std::string& kind, const std::string& name)
{
    if (kind == "fair") {
        return client.getFairLock(name);
    }
    return client.getLock(name);
}

/// How long the lock is kept after the other process was asked to take it: that process asks, subscribes and asks again
/// meanwhile.
constexpr std::chrono::microseconds holdFor{3000};

/// The process that waits. It ends when its standard input is closed.
class Partner {
public:
    Partner(const std::string& url, const std::string& kind) : process_({"--partner", url, kind, lockName}) {}

    /// Lets the process call lock().
    void askForLock() const { process_.write(std::as_bytes(std::span("L", 1))); }
    /// Waits until the process has had the lock. @return when its lock() returned.
    [[nodiscard]] Clock::time_point awaitHeld() const
    {
        Clock::rep moment = 0;
        expect(process_.read(std::as_writable_bytes(std::span(&moment, 1))) == sizeof(moment), "the second process");
        return Clock::time_point(Clock::duration(moment));
    }

private:
    OwnProcess process_;
};

class Giver {
public:
    Giver(const std::string& url, const std::string& kind)
        : partner_(url, kind), client_(url), lock_(lockOf(client_, kind, lockName))
    {
    }

    double medianHandOver(Seconds duration)
    {
        std::vector<double> samples;
        const auto end = Clock::now() + duration;
        do {
            lock_.lock();
            partner_.askForLock();
            std::this_thread::sleep_for(holdFor);
            const auto called = Clock::now();
            expect(lock_.unlock() == Unlocked::released, "the library's unlock()");
            samples.push_back(microseconds(partner_.awaitHeld() - called));
        } while (Clock::now() < end);
        return median(std::move(samples));
    }

private:
    Partner partner_;
    Client client_;
    Lock lock_;
};

/// The fastest possible hand-over: one script sets a holder and publishes it, and a waiting thread reads the message.
class RawPass {
public:
    explicit RawPass(const Target& target)
        : commands_(target.host, target.port),
          listener_(target.host, target.port),
          script_(commands_.load("redis.call('HSET', KEYS[1], ARGV[1], '1') redis.call('PEXPIRE', KEYS[1], ARGV[2]) "
                                 "return redis.call('PUBLISH', KEYS[2], ARGV[1])"))
    {
        listener_.command({"SUBSCRIBE", channel});
        reader_ = std::jthread([this](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
                listener_.nextReply();
                heard_ = Clock::now().time_since_epoch().count();
                heard_.notify_one();
            }
        });
    }
    RawPass(const RawPass&) = delete;
    RawPass& operator=(const RawPass&) = delete;
    ~RawPass()
    {
        reader_.request_stop();
        pass();
    }

    double medianPass(Seconds duration)
    {
        std::vector<double> samples;
        const auto end = Clock::now() + duration;
        do {
            std::this_thread::sleep_for(holdFor);
            heard_ = 0;
            const auto called = Clock::now();
            pass();
            heard_.wait(0);
            samples.push_back(microseconds(Clock::time_point(Clock::duration(heard_)) - called));
        } while (Clock::now() < end);
        return median(std::move(samples));
    }

private:
    static constexpr std::string_view channel = "bench:raw-pass:channel";

    void pass() { commands_.command({"EVALSHA", script_, "2", "bench:raw-pass", channel, "holder", "30000"}); }

    RawConnection commands_;
    RawConnection listener_;
    std::string script_;
    std::atomic<Clock::rep> heard_{0};
    std::jthread reader_;
};

} // namespace

void runPartner(const std::string& url, const std::string& kind, const std::string& name)
{
    endWithParent();
    const Client client(url);
    const auto lock = lockOf(client, kind, name);
    for (char order = 0; ::read(STDIN_FILENO, &order, 1) == 1;) {
        lock.lock();
        const auto moment = Clock::now().time_since_epoch().count();
        expect(lock.unlock() == Unlocked::released, "the second process' unlock()");
        if (::write(STDOUT_FILENO, &moment, sizeof(moment)) != static_cast<ssize_t>(sizeof(moment))) {
            return;
        }
    }
}

Side handOverSide(const std::string& url, const std::string& kind)
{
    return [giver = std::make_shared<Giver>(url, kind)](Seconds d) { return giver->medianHandOver(d); };
}

Measure handOverBetweenProcesses(const Target& target)
{
    return inTurn(handOverSide(target.url, "plain"), pingSide(target, holdFor));
}

Measure handOverOfFairLock(const Target& target)
{
    auto raw = [pass = std::make_shared<RawPass>(target)](Seconds d) { return pass->medianPass(d); };
    return inTurn(handOverSide(target.url, "fair"), std::move(raw));
}

} // namespace redislock::bench
