/// @file
/// How long a waiting process waits after the holder, another process, has called unlock().
#include "ping.hpp"
#include "rows.hpp"

#include <redislock/redislock.hpp>

#include <array>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace redislock::bench {

namespace {

constexpr char lockName[] = "bench:hand-over";

/// How long the lock is kept after the other process was told to take it: it asks, subscribes and asks again meanwhile.
constexpr std::chrono::microseconds holdFor{3000};

/// This program once more, as the process that waits. It ends when the pipe to it is closed.
class Partner {
public:
    explicit Partner(const std::string& url)
    {
        std::array<int, 2> in{};
        std::array<int, 2> out{};
        if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) {
            throw std::system_error(errno, std::generic_category(), "pipe");
        }
        toPartner_ = in[1];
        fromPartner_ = out[0];
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
        std::array<std::string, 4> words{"redislock_bench", "--partner", url, lockName};
        std::array<char*, 5> arguments{words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
        const int error = ::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
        posix_spawn_file_actions_destroy(&actions);
        ::close(in[0]);
        ::close(out[1]);
        if (error != 0) {
            throw std::system_error(error, std::generic_category(), "cannot start the second process");
        }
    }
    Partner(const Partner&) = delete;
    Partner& operator=(const Partner&) = delete;
    ~Partner()
    {
        ::close(toPartner_);
        ::close(fromPartner_);
        ::waitpid(pid_, nullptr, 0);
    }

    /// Lets it call lock().
    void askForLock() const
    {
        if (::write(toPartner_, "L", 1) != 1) {
            throw std::runtime_error("the second process has ended");
        }
    }
    /// Waits until it has had the lock. @return when its lock() returned.
    [[nodiscard]] Clock::time_point awaitHeld() const
    {
        Clock::rep moment = 0;
        if (::read(fromPartner_, &moment, sizeof(moment)) != static_cast<ssize_t>(sizeof(moment))) {
            throw std::runtime_error("the second process has ended");
        }
        return Clock::time_point(Clock::duration(moment));
    }

private:
    pid_t pid_ = 0;
    int toPartner_ = -1;
    int fromPartner_ = -1;
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
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
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
