// A process of a chaos run: threads and chains of asynchronous calls that take and free shared locks as programs do,
// and a thread that shows, with a lock of its own, that the process can still take and free a lock.
#include "chaos/async_locker.hpp"
#include "chaos/groups.hpp"
#include "chaos/locker.hpp"
#include "chaos/progress.hpp"
#include "history/report.hpp"
#include "support/eventually.hpp"
#include "support/own_resources.hpp"

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
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
    std::string durableUrl;
    std::vector<std::string> members;
    std::filesystem::path folder;
    std::size_t slot = 0;
    std::uint64_t seed = 1;
    int threads = 4;
};

constexpr int sharedLocks = 12;       ///< RedisLocks
constexpr int sharedLocksOfAKind = 2; ///< shared locks of each other kind
constexpr int chains = 3;             ///< chains of asynchronous calls
constexpr int groupThreads = 2;       ///< threads that take only groups

using Clients = std::vector<std::unique_ptr<Client>>;

/// Shows that this process can get and free a lock. @param recovered of the slot
void prove(const history::RecordedLock& lock, chaos::Board& board, chaos::Slot& slot,
           std::atomic<std::int64_t>& recovered)
{
    auto own = lock;
    while (!board.ending) {
        const auto began = bootTime().count();
        if (own.tryLock(500ms, 500ms) && own.sample() && own.unlock() == Unlocked::released) {
            recovered = began;
        }
        slot.operations += 2;
        std::this_thread::sleep_for(20ms);
    }
}

/// Shows the same for groups: one that needs some servers, and one that needs all.
void proveGroups(std::vector<history::RecordedGroup> own, chaos::Board& board, chaos::Slot& slot)
{
    while (!board.ending) {
        const auto began = bootTime().count();
        const bool all = std::all_of(own.begin(), own.end(), [](history::RecordedGroup& group) {
            return group.tryLock(500ms, 500ms) && group.sample() && group.unlock() == Unlocked::released;
        });
        if (all) {
            slot.groupsRecovered = began;
        }
        slot.operations += 2 * own.size();
        std::this_thread::sleep_for(100ms);
    }
}

void recordResources(history::Recorder& recorder, history::Phase phase, std::int64_t files, std::int64_t threads)
{
    recorder.write({.op = history::Op::resources, .phase = phase, .count = files, .error = "files"});
    recorder.write({.op = history::Op::resources, .phase = phase, .count = threads, .error = "threads"});
}

/// A client and its settings. @param observer null for the clients of groups: their members are not recorded.
std::unique_ptr<Client> clientOf(const std::string& url, history::Recorder& recorder,
                                 std::shared_ptr<Observer> observer = nullptr)
{
    auto config = Config::fromUrl(url);
    config.clientName = "chaos";
    config.connectTimeout = config.commandTimeout = 250ms;
    config.unreachableAfter = 3s;
    config.watchdogTimeout = 2s;
    config.pollInterval = 1s;
    config.observer = std::move(observer);
    auto client = std::make_unique<Client>(config);
    history::recordSettings(recorder, *client);
    return client;
}

/// The work of a process: all its threads and chains on one client, and on the clients of the groups, until the
/// director ends the run.
class Work {
public:
    Work(const Options& options, const Client& client, const Clients& members,
         std::shared_ptr<history::Recorder> recorder, chaos::Board& board)
        : options_(options),
          client_(client),
          members_(members),
          recorder_(std::move(recorder)),
          board_(board),
          slot_(board.slots[options.slot])
    {
    }

    void run(boost::asio::io_context& io)
    {
        std::vector<std::thread> threads;
        threads.emplace_back([this] {
            prove({recorder_, client_, "chaos:own:" + client_.id(), 0}, board_, slot_, slot_.recovered);
        });
        for (int i = 0; i < options_.threads; ++i) {
            threads.emplace_back([this, owner = next_++] { locker(owner).run(); });
        }
        threads.emplace_back([this, owner = next_++] { // two processes wait for each of these
            locker(owner).runPatiently({recorder_, client_, "chaos:long:" + std::to_string(options_.slot / 2), owner});
        });
        threads.emplace_back([this, owner = next_++] { count(owner); });
        for (int i = 0; i < groupThreads; ++i) {
            threads.emplace_back([this, owner = next_++] {
                chaos::Locker(board_, slot_, seedOf(owner), {{}, {}, {}, groupsOf(chaos::sharedGroups(), owner)}).run();
            });
        }
        threads.emplace_back(
            [this, owner = next_++] { proveGroups(groupsOf(chaos::ownGroups(client_.id()), owner), board_, slot_); });
        std::vector<std::unique_ptr<chaos::AsyncLocker<history::RecordedLock>>> asynchronous;
        for (int i = 0; i < chains; ++i, ++next_) {
            asynchronous.push_back(begun(io, next_, locksOf(next_)));
        }
        const auto ofGroups = begun(io, next_, groupsOf(chaos::sharedGroups(), next_));
        threads.emplace_back([&io] { io.run(); });
        for (auto& thread : threads) {
            thread.join();
        }
    }

private:
    [[nodiscard]] std::uint64_t seedOf(int owner) const { return options_.seed * 1000 + static_cast<unsigned>(owner); }

    /// A running chain of calls.
    template <class Lock>
    std::unique_ptr<chaos::AsyncLocker<Lock>> begun(boost::asio::io_context& io, int owner,
                                                    std::vector<Lock> locks) const
    {
        auto chain = std::make_unique<chaos::AsyncLocker<Lock>>(io, board_, slot_, seedOf(owner), std::move(locks));
        boost::asio::post(io, [begins = chain.get()] { begins->begin(); });
        return chain;
    }

    [[nodiscard]] std::vector<history::RecordedGroup> groupsOf(const std::vector<chaos::SharedGroup>& groups,
                                                               int owner) const
    {
        std::vector<history::RecordedGroup> recorded;
        for (const auto& group : groups) {
            std::vector<history::RecordedMember> members;
            for (const auto& [server, name] : group.members) {
                members.push_back({*members_[server], name});
            }
            recorded.emplace_back(recorder_, group.kind, group.name, members, owner);
        }
        return recorded;
    }

    [[nodiscard]] std::vector<history::RecordedLock> locksOf(int owner) const
    {
        std::vector<history::RecordedLock> locks;
        for (int i = 0; i < sharedLocks; ++i) {
            locks.emplace_back(recorder_, client_, "chaos:" + std::to_string(i), owner);
        }
        for (const auto& kind : chaos::otherKinds) {
            for (int i = 0; i < sharedLocksOfAKind; ++i) {
                const auto name = kind == "read" || kind == "write" ? "readWrite" : kind; // two halves
                locks.emplace_back(recorder_, client_, "chaos:" + name + ":" + std::to_string(i), owner, kind);
            }
        }
        return locks;
    }

    [[nodiscard]] chaos::Shared sharedOf(int owner) const
    {
        chaos::Shared shared{locksOf(owner), {}, {}};
        for (int i = 0; i < chaos::semaphores; ++i) {
            shared.permits.emplace_back(recorder_, client_, chaos::leasedName(i), owner);
            shared.semaphores.emplace_back(recorder_, client_, chaos::plainName(i), owner);
        }
        return shared;
    }

    [[nodiscard]] chaos::Locker locker(int owner) const { return {board_, slot_, seedOf(owner), sharedOf(owner)}; }

    /// Counts each latch down, and waits for the other processes.
    void count(int owner) const
    {
        chaos::Habits habits(seedOf(owner));
        for (int i = board_.latch; i < chaos::latches && !board_.ending; ++i) {
            history::RecordedLatch latch(recorder_, client_, chaos::latchName(i), owner);
            latch.countDown();
            while (!board_.ending && !latch.wait(habits.between(50, 500))) {
            }
            board_.latch = std::max(board_.latch.load(), i + 1);
            std::this_thread::sleep_for(habits.between(50, 350));
        }
    }

    const Options& options_;
    const Client& client_;
    const Clients& members_; ///< of the groups, by server
    std::shared_ptr<history::Recorder> recorder_;
    chaos::Board& board_;
    chaos::Slot& slot_;
    int next_ = 1; ///< the number of the next owner of holds; 0 is that of the proving thread
};

chaos::Shared locksOfFailOvers(const std::shared_ptr<history::Recorder>& recorder, const Client& plain,
                               const Client& durable, int owner)
{
    chaos::Shared shared{};
    for (const auto& [kind, end] : chaos::locksThatFailOver()) {
        shared.locks.emplace_back(recorder, plain, chaos::plainLock(end), owner, kind);
        shared.locks.emplace_back(recorder, durable, chaos::durableLock(end), owner, kind);
    }
    // the tokens of a lock without a durability may come again after a fail-over
    shared.locks.emplace_back(recorder, durable, chaos::durableLock("fenced"), owner, "fenced");
    return shared;
}

/// The work of a process of a run with fail-overs.
void workThroughFailOvers(const Options& options, const std::shared_ptr<history::Recorder>& recorder,
                          chaos::Board& board, chaos::Slot& slot)
{
    const auto observer = std::make_shared<history::HistoryObserver>(recorder);
    const auto plain = clientOf(options.url, *recorder, observer);
    const auto durable = clientOf(options.durableUrl, *recorder, observer);
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
        prove({recorder, *plain, "chaos:own:" + plain->id(), 0}, board, slot, slot.recovered);
    });
    threads.emplace_back([&] {
        prove({recorder, *durable, chaos::durableLock("own:") + durable->id(), 1}, board, slot, slot.groupsRecovered);
    });
    const auto begin = [&](int owner, bool isPatient, const std::string& name, const Client& client) {
        threads.emplace_back([&, owner, isPatient, name] {
            chaos::Locker locker(board, slot, options.seed * 1000 + static_cast<unsigned>(owner),
                                 locksOfFailOvers(recorder, *plain, *durable, owner));
            isPatient ? locker.runPatiently({recorder, client, name, owner}) : locker.run();
        });
    };
    int owner = 2;
    for (int i = 0; i < options.threads; ++i) {
        begin(owner++, false, "", *plain);
    }
    for (int i = 0; i < 2; ++i) { // held for seconds, and wanted
        begin(owner++, true, chaos::plainLock("long:") + std::to_string(i), *plain);
        begin(owner++, true, chaos::durableLock("long:") + std::to_string(i), *durable);
    }
    for (auto& thread : threads) {
        thread.join();
    }
    slot.quiet = true;
    (void)eventually([&] { return board.leave.load(); }, 30s);
}

void work(const Options& options)
{
    const chaos::Progress progress(options.folder / "board");
    chaos::Slot& slot = progress->slots[options.slot];
    const auto recorder =
        std::make_shared<history::Recorder>(options.folder / ("client-" + std::to_string(::getpid()) + ".jsonl"));
    if (!options.durableUrl.empty()) {
        return workThroughFailOvers(options, recorder, *progress, slot);
    }
    boost::asio::io_context io;
    const boost::asio::steady_timer opensItsFiles(io);
    const auto files = openFiles();
    recorder->write({.op = history::Op::resources,
                     .phase = history::Phase::invoke,
                     .count = files,
                     .error = "files after the client"});
    {
        const auto client = clientOf(options.url, *recorder, std::make_shared<history::HistoryObserver>(recorder));
        Clients members;
        for (const auto& url : options.members) {
            members.push_back(clientOf(url, *recorder));
        }
        // The descriptors of a client: three connections, and for its thread five timers, a wake-up and an epoll.
        constexpr int filesOfAClient = 10;
        const auto clients = static_cast<std::int64_t>(1 + members.size());
        recordResources(*recorder, history::Phase::invoke, files + clients * filesOfAClient, 1 + clients);
        Work(options, *client, members, recorder, *progress).run(io);
        (void)eventually([&] { return openFiles() <= files + clients * filesOfAClient; }, 3s);
        recordResources(*recorder, history::Phase::ok, openFiles(), runningThreads());
        slot.quiet = true;
        (void)eventually([&] { return progress->leave.load(); }, 30s);
    }
    const auto left = openFiles();
    if (left > files) {
        std::cerr << "worker: " << left - files << " files too many: " << listOfOpenFiles() << '\n';
    }
    recorder->write(
        {.op = history::Op::resources, .phase = history::Phase::ok, .count = left, .error = "files after the client"});
}

} // namespace

int main(int argc, char** argv)
{
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Options options;
    CLI::App app{"A worker process of a chaos run; started by redislock_chaos."};
    app.add_option("--url", options.url)->required();
    app.add_option("--durable-url", options.durableUrl, "Of a run with fail-overs: for the locks with a durability");
    app.add_option("--member", options.members, "The servers of groups; a run with fail-overs has none");
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
