/// @file
/// How several processes share a lock if each of them wants it again as soon as it has released it.
#include "shared.hpp"

#include "own_process.hpp"
#include "reference/raw_connection.hpp"
#include "reference/server_facts.hpp"
#include "rows.hpp"
#include "slow_link.hpp"
#include "statistics.hpp"

#include <redislock/redislock.hpp>
#include <wire/key_schema.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace redislock::bench {

namespace {

constexpr char lockName[] = "bench:shared";
constexpr std::size_t mostProcesses = 8;

/// The shared memory in which the processes tell each other what happens.
struct Board {
    struct Part {
        std::atomic<std::uint64_t> locks{0};
        std::atomic<std::uint64_t> longestWait{0}; ///< ns
    };

    std::atomic<unsigned> ready{0};
    std::atomic<bool> go{false};
    std::atomic<bool> stop{false};
    std::atomic<unsigned> inside{0};
    std::atomic<unsigned> overlaps{0};
    std::atomic<std::size_t> last{mostProcesses};
    std::atomic<std::uint64_t> changes{0};
    std::atomic<Clock::rep> released{0}; ///< when the last holder called unlock(); 0: nobody has yet
    std::array<Part, mostProcesses> parts{};
    /// How many hand-overs between processes took so many times 10 µs, or more for the last.
    std::array<std::atomic<std::uint32_t>, 10'000> handOvers{};
};

Board& boardOf(int descriptor)
{
    void* const memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) {
        throw std::system_error(errno, std::generic_category(), "mmap");
    }
    return *static_cast<Board*>(memory);
}

void await(const std::atomic<bool>& flag)
{
    while (!flag) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
}

/// A board and its processes, for one measurement.
class Sharers {
public:
    Sharers(const Target& target, const Sharing& sharing) : descriptor_(::memfd_create("board", 0))
    {
        if (descriptor_ < 0 || ::ftruncate(descriptor_, sizeof(Board)) != 0) {
            throw std::system_error(errno, std::generic_category(), "memfd_create");
        }
        board_ = new (&boardOf(descriptor_)) Board;
        for (unsigned process = 0; process < sharing.processes; ++process) {
            const auto pause = process + 1 == sharing.processes ? sharing.pause.count() : 0;
            processes_.push_back(std::make_unique<OwnProcess>(
                std::vector<std::string>{"--sharer", target.url, std::to_string(descriptor_), std::to_string(process),
                                         std::to_string(sharing.threads), std::to_string(sharing.section.count()),
                                         std::string(sharing.form), std::to_string(pause)}));
        }
        while (board_->ready < sharing.processes) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    Sharers(const Sharers&) = delete;
    Sharers& operator=(const Sharers&) = delete;
    ~Sharers()
    {
        processes_.clear();
        ::munmap(board_, sizeof(Board));
        ::close(descriptor_);
    }

    /// @param changes shares it for so many changes of process at least. @return for how long the lock was shared.
    Seconds run(Seconds duration, std::uint64_t changes = 0)
    {
        const auto begin = Clock::now();
        board_->go = true;
        std::this_thread::sleep_for(duration);
        while (board_->changes < changes) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        board_->stop = true;
        for (const auto& process : processes_) {
            expect(process->awaitEnd() == 0, "a process that shares the lock");
        }
        return Clock::now() - begin;
    }

    [[nodiscard]] const Board& board() const noexcept { return *board_; }

private:
    int descriptor_;
    Board* board_;
    std::vector<std::unique_ptr<OwnProcess>> processes_;
};

struct Shared {
    double locks;   ///< a second
    double changes; ///< of process, a second
    double longest; ///< wait, ms
    double least;   ///< locks of the process with the fewest, against the mean
    double requests;
};

Shared share(const Target& target, const Sharing& sharing, Seconds duration)
{
    RawConnection statistics(target.host, target.port);
    std::optional<SlowLink> link;
    if (sharing.delay.count() > 0) {
        link.emplace(target, sharing.delay);
    }
    std::optional<RawConnection> listener;
    if (sharing.listener) {
        listener.emplace(target.host, target.port).command({"SUBSCRIBE", detail::lockChannel(lockName)});
    }
    Sharers sharers(link ? link->target() : target, sharing);
    const auto before = requestsSoFar(statistics);
    const auto taken = sharers.run(duration).count();
    const auto requests = requestsSoFar(statistics) - before;
    const Board& board = sharers.board();
    expect(board.overlaps == 0, "the exclusion of a shared lock");
    double locks = 0;
    double fewest = -1;
    std::uint64_t longest = 0;
    for (unsigned process = 0; process < sharing.processes; ++process) {
        const auto own = static_cast<double>(board.parts[process].locks);
        locks += own;
        fewest = fewest < 0 ? own : std::min(fewest, own);
        longest = std::max<std::uint64_t>(longest, board.parts[process].longestWait);
    }
    return {locks / taken, static_cast<double>(board.changes) / taken, static_cast<double>(longest) / 1e6,
            fewest * sharing.processes / locks, requests / locks};
}

/// Takes the lock in one of the ways that runSharer() knows. Guards release the lock in their destructors.
class Taker {
public:
    Taker(const Client& client, std::string_view form)
        : lock_(form == "fair" ? Lock(client.getFairLock(lockName)) : Lock(client.getLock(lockName))),
          guards_(form == "guard"),
          varied_(form == "fair" || form == "varied")
    {
        constexpr std::chrono::milliseconds pause{10};
        if (form == "sleep") {
            policy_ = RetryPolicy::fixed(pause);
        } else if (form == "spin") {
            policy_ = RetryPolicy::spin();
        } else if (form == "both") {
            policy_ = RetryPolicy::spinThenSleep(10, pause);
        }
    }

    template <class Act>
    void with(const Act& act) const
    {
        if (guards_) {
            const LockGuard held(lock_);
            return act();
        }
        if (policy_) {
            expect(lock_.tryLock(waitForever, keepRenewing, *policy_), "a lock taken by a policy");
        } else {
            lock_.lock();
        }
        act();
        lock_.unlock();
    }
    /// For how long the lock is held this time.
    [[nodiscard]] std::chrono::microseconds section(std::chrono::microseconds mean, Random& random) const
    {
        return varied_ ? std::chrono::duration_cast<std::chrono::microseconds>(mean * random.around(1.0 / 3)) : mean;
    }

private:
    Lock lock_;
    bool guards_;
    bool varied_;
    std::optional<RetryPolicy> policy_;
};

void oneThread(Board& board, std::size_t process, const Taker& taker, std::chrono::microseconds section,
               std::chrono::microseconds pause)
{
    Random random(process);
    while (!board.stop) {
        const auto begin = Clock::now();
        taker.with([&] {
            const auto now = Clock::now();
            const auto waited = now - begin;
            board.overlaps += board.inside.fetch_add(1) == 0 ? 0U : 1U;
            auto& longest = board.parts[process].longestWait;
            const auto wait = static_cast<std::uint64_t>(std::chrono::nanoseconds(waited).count());
            longest = std::max<std::uint64_t>(longest, wait); // only the holder does this
            if (board.last.exchange(process) != process) {
                ++board.changes;
                const auto released = Clock::time_point(Clock::duration(board.released));
                if (released != Clock::time_point()) {
                    const auto slot = static_cast<std::size_t>((now - released) / std::chrono::microseconds(10));
                    ++board.handOvers[std::min(slot, board.handOvers.size() - 1)];
                }
            }
            ++board.parts[process].locks;
            if (section.count() > 0) {
                std::this_thread::sleep_for(taker.section(section, random));
            }
            --board.inside;
            board.released = Clock::now().time_since_epoch().count();
        });
        if (pause.count() > 0) {
            std::this_thread::sleep_for(pause);
        }
    }
}

} // namespace

void runSharer(const std::vector<std::string>& words)
{
    endWithParent();
    ::prctl(PR_SET_TIMERSLACK, 1UL); // a sleep under the lock takes its exact time, and not 50 µs more
    Board& board = boardOf(std::stoi(words[1]));
    const auto process = static_cast<std::size_t>(std::stoul(words[2]));
    const std::chrono::microseconds section(std::stol(words[4]));
    const std::chrono::microseconds pause(std::stol(words[6]));
    const Client client(words[0]);
    { // its first request takes longer
        const LockGuard held(client.getLock(lockName));
    }
    ++board.ready;
    await(board.go);
    const Taker taker(client, words[5]);
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < std::stoul(words[3]); ++thread) {
        threads.emplace_back([&] { oneThread(board, process, taker, section, pause); });
    }
}

namespace {

std::string noteOf(const Shared& shared)
{
    return fmt::format("{:.0f} locks/s, {:.0f} changes of process/s, longest wait {:.1f} ms, "
                       "least-served process {:.2f} of the mean, {:.1f} requests a lock",
                       shared.locks, shared.changes, shared.longest, shared.least, shared.requests);
}

double valueOf(const Shared& shared, SharedFigure figure)
{
    switch (figure) {
    case SharedFigure::locks:
        return shared.locks;
    case SharedFigure::changes:
        return shared.changes;
    case SharedFigure::longestWait:
        return shared.longest;
    case SharedFigure::leastServed:
        return shared.least;
    case SharedFigure::requests:
        break;
    }
    return shared.requests;
}

/// Lets the processes share the lock long enough for a judgement.
Shared shareLongEnough(const Target& target, const Sharing& how, Seconds duration)
{
    constexpr Seconds least{1.0};
    return share(target, how, target.tryOut ? duration : std::max(duration, least));
}

} // namespace

Measure sharing(const Target& target, const Sharing& how, SharedFigure figure, double allowed)
{
    return [=](Seconds duration, First) {
        const auto shared = shareLongEnough(target, how, duration);
        return Pair{valueOf(shared, figure), allowed, noteOf(shared)};
    };
}

Measure sharingOtherwise(const Target& target, const Sharing& how, SharedFigure figure, const Sharing& otherwise)
{
    return [=](Seconds duration, First) {
        const auto shared = shareLongEnough(target, how, duration);
        const auto other = shareLongEnough(target, otherwise, duration);
        return Pair{valueOf(shared, figure), valueOf(other, figure), noteOf(shared) + "; otherwise " + noteOf(other)};
    };
}

Measure slowHandOvers(const Target& target, std::chrono::microseconds section)
{
    const auto slowest = [=](std::string_view form) {
        Sharers sharers(target, {2, 1, section, form});
        sharers.run(Seconds(0), target.many(400));
        const Board& board = sharers.board();
        expect(board.overlaps == 0, "the exclusion of a shared lock");
        std::vector<double> samples;
        for (std::size_t slot = 0; slot < board.handOvers.size(); ++slot) {
            samples.insert(samples.end(), board.handOvers[slot], 10.0 * static_cast<double>(slot + 1));
        }
        return quantile(std::move(samples), 0.99);
    };
    return [=](Seconds, First) { // in turns, and the median of five
        std::vector<double> plain;
        std::vector<double> fair;
        for (int i = 0; i < 5; ++i) {
            plain.push_back(slowest("varied"));
            fair.push_back(slowest("fair"));
        }
        return Pair{median(std::move(plain)), median(std::move(fair))};
    };
}

} // namespace redislock::bench
