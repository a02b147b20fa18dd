// A process of a chaos run: some threads that take and free shared locks as programs do, and one that shows, with a
// lock of its own, that the process can still do so.
#include "chaos/progress.hpp"
#include "history/recorded_lock.hpp"
#include "support/eventually.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <sys/prctl.h>
#include <unistd.h>

namespace {

using namespace redislock;
using namespace redislock::test;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

struct Options {
    std::string url;
    std::filesystem::path folder;
    std::size_t slot = 0;
    std::uint64_t seed = 1;
    int threads = 4;
    int locks = 12;
};

/// Adds one for as long as it lives.
class Counted {
public:
    explicit Counted(std::atomic<int>& counter) : counter_(counter) { ++counter_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() { --counter_; }

private:
    std::atomic<int>& counter_;
};

/// One thread and its locks.
class Locker {
public:
    Locker(const Options& options, const Client& client, const std::shared_ptr<history::Recorder>& recorder,
           chaos::Board& board, int thread)
        : board_(board), slot_(board.slots[options.slot]), random_(options.seed * 1000 + static_cast<unsigned>(thread))
    {
        for (int i = 0; i < options.locks; ++i) {
            locks_.emplace_back(recorder, client, "chaos:" + std::to_string(i), thread);
        }
    }

    void run()
    {
        while (!board_.ending) {
            round(locks_[upTo(locks_.size() - 1)]);
        }
    }

    /// Holds for some renewals, then lets the one who waits have it: nobody else asks.
    void runPatiently(history::RecordedLock lock)
    {
        while (!board_.ending) {
            if (tryLock(lock, 3s, keepRenewing)) {
                const Counted holding(slot_.holding);
                use(lock, between(300, 3000));
                unlock(lock);
            }
            std::this_thread::sleep_for(300ms);
        }
    }

private:
    std::size_t upTo(std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(random_); }
    bool oneIn(std::size_t n) { return upTo(n - 1) == 0; }
    milliseconds between(int least, int most)
    {
        return milliseconds(std::uniform_int_distribution<int>(least, most)(random_));
    }

    Lease someLease() { return oneIn(2) ? Lease(between(300, 1200)) : keepRenewing; }

    Wait someWait()
    {
        const auto which = upTo(9);
        return which < 2 ? Wait(0ms) : which < 8 ? Wait(between(100, 1500)) : Wait(3s);
    }

    milliseconds someHold()
    {
        const auto which = upTo(199);
        return which < 170 ? 0ms : which < 193 ? between(1, 30) : which < 199 ? between(50, 300) : between(500, 1500);
    }

    bool tryLock(history::RecordedLock& lock, Wait wait, Lease lease)
    {
        const Counted waiting(slot_.waiting);
        const bool got = lock.tryLock(wait, lease);
        ++slot_.operations;
        return got;
    }

    void unlock(history::RecordedLock& lock)
    {
        lock.unlock();
        ++slot_.operations;
    }

    void round(history::RecordedLock& lock)
    {
        if (!tryLock(lock, someWait(), someLease())) {
            return;
        }
        const Counted holding(slot_.holding);
        use(lock, someHold());
        if (oneIn(6) && tryLock(lock, someWait(), someLease())) {
            use(lock, someHold() / 4);
            unlock(lock);
            lock.sample();
        }
        unlock(lock);
        if (oneIn(20)) {
            lock.sample();
            unlock(lock); // one too many
        }
    }

    /// Believes, and looks at it now and then, until the time or the belief is over.
    void use(history::RecordedLock& lock, milliseconds time)
    {
        const Stopwatch watch;
        while (lock.sample() && watch.elapsed() < time && !board_.ending) {
            std::this_thread::sleep_for(std::min<milliseconds>(time, 7ms));
        }
    }

    chaos::Board& board_;
    chaos::Slot& slot_;
    std::mt19937_64 random_;
    std::vector<history::RecordedLock> locks_;
};

/// Shows that this process can get and free a lock.
void prove(const Client& client, const std::shared_ptr<history::Recorder>& recorder, chaos::Board& board,
           chaos::Slot& slot)
{
    history::RecordedLock own(recorder, client, "chaos:own:" + client.id(), 0);
    while (!board.ending) {
        const auto began = bootTime().count();
        if (own.tryLock(500ms, 500ms) && own.sample() && own.unlock() == Unlocked::released) {
            slot.recovered = began;
        }
        slot.operations += 2;
        std::this_thread::sleep_for(20ms);
    }
}

std::int64_t entriesOf(const std::filesystem::path& folder)
{
    const std::filesystem::directory_iterator entries(folder);
    return std::distance(begin(entries), end(entries));
}

std::int64_t openFiles()
{
    return entriesOf("/proc/self/fd");
}

std::int64_t runningThreads()
{
    return entriesOf("/proc/self/task");
}

void recordResources(history::Recorder& recorder, history::Phase phase, std::int64_t files, std::int64_t threads)
{
    recorder.write({.op = history::Op::resources, .phase = phase, .count = files, .error = "files"});
    recorder.write({.op = history::Op::resources, .phase = phase, .count = threads, .error = "threads"});
}

Config configOf(const Options& options, const std::shared_ptr<history::Recorder>& recorder)
{
    auto config = Config::fromUrl(options.url);
    config.clientName = "chaos";
    config.connectTimeout = config.commandTimeout = 250ms;
    config.unreachableAfter = 3s;
    config.watchdogTimeout = 2s;
    config.pollInterval = 1s;
    config.observer = std::make_shared<history::HistoryObserver>(recorder);
    return config;
}

void work(const Options& options)
{
    const chaos::Progress progress(options.folder / "board");
    chaos::Slot& slot = progress->slots[options.slot];
    const auto recorder =
        std::make_shared<history::Recorder>(options.folder / ("client-" + std::to_string(::getpid()) + ".jsonl"));
    const auto files = openFiles();
    recorder->write({.op = history::Op::resources,
                     .phase = history::Phase::invoke,
                     .count = files,
                     .error = "files after the client"});
    {
        const Client client(configOf(options, recorder));
        history::recordSettings(*recorder, client);
        // A client: three connections, and of its thread two timers, a wake-up and what waits for events.
        constexpr int filesOfAClient = 8;
        recordResources(*recorder, history::Phase::invoke, files + filesOfAClient, 2);
        std::vector<std::thread> threads;
        threads.emplace_back([&] { prove(client, recorder, *progress, slot); });
        for (int i = 1; i <= options.threads; ++i) {
            threads.emplace_back([&, i] { Locker(options, client, recorder, *progress, i).run(); });
        }
        threads.emplace_back([&, i = options.threads + 1] { // two processes wait for each of these
            history::RecordedLock lock(recorder, client, "chaos:long:" + std::to_string(options.slot / 2), i);
            Locker(options, client, recorder, *progress, i).runPatiently(std::move(lock));
        });
        for (auto& thread : threads) {
            thread.join();
        }
        (void)eventually([&] { return openFiles() <= files + filesOfAClient; }, 3s);
        recordResources(*recorder, history::Phase::ok, openFiles(), runningThreads());
        slot.quiet = true;
        (void)eventually([&] { return progress->leave.load(); }, 30s);
    }
    recorder->write({.op = history::Op::resources,
                     .phase = history::Phase::ok,
                     .count = openFiles(),
                     .error = "files after the client"});
}

} // namespace

int main(int argc, char** argv)
{
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Options options;
    CLI::App app{"A worker process of a chaos run; started by redislock_chaos."};
    app.add_option("--url", options.url)->required();
    app.add_option("--folder", options.folder)->required();
    app.add_option("--slot", options.slot)->required();
    app.add_option("--seed", options.seed);
    app.add_option("--threads", options.threads);
    CLI11_PARSE(app, argc, argv);
    try {
        work(options);
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "worker: " << error.what() << '\n';
        return 1;
    }
}
