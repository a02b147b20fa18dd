#include "chaos/world.hpp"

#include "chaos/habits.hpp"
#include "support/eventually.hpp"

#include <redislock/redislock.hpp>

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <thread>

namespace redislock::test::chaos {

using namespace std::chrono_literals;
using history::Op;

World::World(const Plan& plan)
    : plan_(plan),
      random_(plan.seed),
      progress_(plan.folder / "board"),
      recorder_(std::make_shared<history::Recorder>(plan.folder / "director.jsonl")),
      heartbeat_(recorder_),
      backend_(std::make_unique<Backend>(plan.folder, 0, true)),
      workers_(plan.processes)
{
    if (plan.processes > Board::most) {
        throw std::invalid_argument("too many processes");
    }
    history::TruthRecorder::recordClock(*recorder_);
    for (std::size_t i = 0; i < groupServers; ++i) {
        members_.push_back(std::make_unique<Backend>(plan.folder, static_cast<int>(i) + 1, false));
    }
    makeShared();
    for (std::size_t slot = 0; slot < plan.processes; ++slot) {
        startWorker(slot);
    }
}

/// Makes the objects that exist once, and writes their numbers down.
void World::makeShared()
{
    const Client client(server().url());
    const auto note = [&](Op op, const std::string& name, std::int64_t count) {
        recorder_->write({.lock = name, .op = op, .phase = history::Phase::invoke, .count = count});
    };
    for (int i = 0; i < semaphores; ++i) {
        client.getPermitExpirableSemaphore(leasedName(i)).trySetPermits(leasedPermits);
        note(Op::permits, leasedName(i), leasedPermits);
        client.getSemaphore(plainName(i)).trySetPermits(plainPermits);
        note(Op::permits, plainName(i), plainPermits);
    }
    const auto counts = static_cast<std::int64_t>(processes());
    for (int i = 0; i < latches; ++i) {
        client.getCountDownLatch(latchName(i)).trySetCount(counts);
        note(Op::latch, latchName(i), counts);
    }
}

void World::recordShared()
{
    const auto note = [&](Op op, const std::string& name, std::int64_t count) {
        recorder_->write({.lock = name, .op = op, .phase = history::Phase::ok, .count = count});
    };
    const auto numberAt = [&](const std::string& name) {
        const auto reply = redis().command({"GET", name});
        return reply.isNil() ? 0 : std::stoll(reply.text());
    };
    for (int i = 0; i < semaphores; ++i) {
        const auto taken = redis().command({"ZCARD", "{" + leasedName(i) + "}:timeout"}).integer();
        note(Op::permits, leasedName(i), numberAt(leasedName(i)) + taken);
        note(Op::permits, plainName(i), numberAt(plainName(i)));
    }
    for (int i = 0; i < latches; ++i) {
        note(Op::latch, latchName(i), numberAt(latchName(i)));
    }
}

void World::startWorker(std::size_t slot)
{
    auto& place = progress_->slots[slot];
    place.holding = place.waiting = 0;
    place.recovered = place.groupsRecovered = 0;
    std::vector<std::string> words{plan_.worker.string(),
                                   "--url",
                                   proxy().url(),
                                   "--folder",
                                   plan_.folder.string(),
                                   "--slot",
                                   std::to_string(slot),
                                   "--seed",
                                   std::to_string(plan_.seed * 100 + started_++),
                                   "--threads",
                                   std::to_string(plan_.threads),
                                   "--member"};
    for (const auto& member : members_) {
        words.push_back(member->proxy().url());
    }
    workers_[slot] = testing::detail::ChildProcess(words, plan_.folder / "workers.log");
}

void World::killWorker(std::size_t slot)
{
    recorder_->write({.pid = workers_[slot].pid(), .op = Op::killed}); // before the kill: no belief exists after it
    workers_[slot].kill();
}

void World::stopWorker(std::size_t slot)
{
    recorder_->write({.pid = workers_[slot].pid(), .op = Op::stopped});
    workers_[slot].signal(SIGSTOP);
    (void)eventually([&] { return workers_[slot].state() == 'T'; });
}

void World::resumeWorker(std::size_t slot)
{
    workers_[slot].signal(SIGCONT);
    recorder_->write({.pid = workers_[slot].pid(), .op = Op::resumed});
}

std::size_t World::someWith(std::atomic<int> Slot::*what)
{
    std::size_t found = 0;
    const auto first = std::uniform_int_distribution<std::size_t>(0, processes() - 1)(random_);
    const bool any = eventually([&] {
        for (std::size_t i = 0; i < processes(); ++i) {
            found = (first + i) % processes();
            if ((progress_->slots[found].*what) > 0) {
                return true;
            }
        }
        return false;
    });
    if (!any) {
        throw std::runtime_error("no process holds or awaits a lock");
    }
    return found;
}

std::size_t World::someHolder()
{
    return someWith(&Slot::holding);
}

std::size_t World::someWaiter()
{
    return someWith(&Slot::waiting);
}

std::vector<Backend*> World::someMembers(std::size_t count)
{
    std::vector<Backend*> members;
    for (const auto& member : members_) {
        members.push_back(member.get());
    }
    std::shuffle(members.begin(), members.end(), random_);
    members.resize(count);
    for (auto* member : members) {
        if (!eventually([&] { return !member->keys().empty(); })) {
            throw std::runtime_error("nobody holds, or wants to hold, a group");
        }
    }
    return members;
}

std::size_t World::afterALease(const std::function<std::size_t(Backend&)>& forget)
{
    constexpr auto longestLease = 2s; // the watchdog's lease
    const auto since = bootTime() - forgot_;
    std::this_thread::sleep_for(std::max<std::chrono::nanoseconds>(longestLease - since, 0ns));
    const auto forgotten = forget(*someMembers(1).front());
    forgot_ = bootTime();
    return forgotten;
}

std::vector<std::size_t> World::awaitRecovery(std::chrono::nanoseconds since)
{
    std::vector<std::size_t> missing;
    (void)eventually(
        [&] {
            missing.clear();
            for (std::size_t slot = 0; slot < processes(); ++slot) {
                const auto& place = progress_->slots[slot];
                if (std::min(place.recovered.load(), place.groupsRecovered.load()) < since.count()) {
                    missing.push_back(slot);
                }
            }
            return missing.empty();
        },
        10s);
    return missing;
}

std::string World::stateOf(std::size_t slot)
{
    return workers_[slot].runs() ? "it runs" : "it ended: " + workers_[slot].ending();
}

std::uint64_t World::operations() const
{
    std::uint64_t sum = 0;
    for (const auto& slot : progress_->slots) {
        sum += slot.operations;
    }
    return sum;
}

bool World::awaitQuiet()
{
    progress_->ending = true;
    return eventually(
        [&] {
            for (std::size_t slot = 0; slot < processes(); ++slot) {
                if (!progress_->slots[slot].quiet) {
                    return false;
                }
            }
            return true;
        },
        20s);
}

/// Records channels and keys that nobody uses any more. The keys of processes that were killed end with their leases.
void World::recordRest(Backend& backend)
{
    const auto channels = [&] { return backend.redis().command({"PUBSUB", "CHANNELS"}).elements.size(); };
    (void)eventually([&] { return channels() == 0; }, 3s);
    recorder_->write({.op = Op::quiet, .count = static_cast<std::int64_t>(channels()), .error = "subscriptions"});
    (void)eventually(
        [&] {
            const auto left = backend.keys();
            return std::all_of(left.begin(), left.end(), [&](const auto& key) {
                const auto live = backend.redis().pttl(key);
                return live < 0ms || live > 10s; // this is no lease
            });
        },
        3s);
    for (const auto& key : backend.keys()) {
        if (const auto live = backend.redis().pttl(key); live != -2ms) { // it has not expired meanwhile
            recorder_->write({.lock = key, .op = Op::leftKey, .count = live.count()});
        }
    }
}

void World::recordRest()
{
    recordRest(backend());
    recordShared();
    for (const auto& member : members_) {
        recordRest(*member);
    }
}

void World::finish()
{
    recordRest();
    progress_->leave = true;
    for (auto& worker : workers_) {
        if (!worker.awaitEnd(10s) || worker.ending() != "exit status 0") {
            throw std::runtime_error("a worker did not end well: " + worker.ending());
        }
    }
    backend_->finish();
    for (const auto& member : members_) {
        member->finish();
    }
    history::TruthRecorder::recordClock(*recorder_);
}

} // namespace redislock::test::chaos
