/// @file
/// How long a waiting process waits after the holder, another process, has called unlock().
#include "own_process.hpp"
#include "ping.hpp"
#include "rows.hpp"
#include "statistics.hpp"

#include <redislock/redislock.hpp>

#include <memory>
#include <span>
#include <string>
#include <thread>

#include <unistd.h>

namespace redislock::bench {

namespace {

constexpr char lockName[] = "bench:hand-over";

/// How long the lock is kept after the other process was told to take it: it asks, subscribes and asks again meanwhile.
constexpr std::chrono::microseconds holdFor{3000};

/// The process that waits. It ends when its standard input is closed.
class Partner {
public:
    explicit Partner(const std::string& url) : process_({"--partner", url, lockName}) {}

    /// Lets it call lock().
    void askForLock() const { process_.write(std::as_bytes(std::span("L", 1))); }
    /// Waits until it has had the lock. @return when its lock() returned.
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
    explicit Giver(const Target& target) : partner_(target.url), client_(target.url), lock_(client_.getLock(lockName))
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
    RedisLock lock_;
};

} // namespace

void runPartner(const std::string& url, const std::string& name)
{
    endWithParent();
    const Client client(url);
    const auto lock = client.getLock(name);
    for (char order = 0; ::read(STDIN_FILENO, &order, 1) == 1;) {
        lock.lock();
        const auto moment = Clock::now().time_since_epoch().count();
        expect(lock.unlock() == Unlocked::released, "the second process' unlock()");
        if (::write(STDOUT_FILENO, &moment, sizeof(moment)) != static_cast<ssize_t>(sizeof(moment))) {
            return;
        }
    }
}

Measure handOverBetweenProcesses(const Target& target)
{
    auto ours = [giver = std::make_shared<Giver>(target)](Seconds d) { return giver->medianHandOver(d); };
    return inTurn(std::move(ours), pingSide(target, holdFor));
}

} // namespace redislock::bench
