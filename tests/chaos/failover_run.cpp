#include "chaos/failover_run.hpp"

#include "chaos/habits.hpp"
#include "history/history.hpp"
#include "history/request_recorder.hpp"
#include "history/truth_recorder.hpp"
#include "support/eventually.hpp"
#include "support/interruption.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>

namespace redislock::test::chaos {
namespace {

using namespace std::chrono_literals;
using history::Op;
using history::Phase;

std::shared_ptr<history::Recorder> recorderOf(const std::filesystem::path& folder, const std::string& what,
                                              std::size_t number)
{
    return std::make_shared<history::Recorder>(folder / (what + "-" + std::to_string(number) + ".jsonl"));
}

} // namespace

/// Writes down which server executes which request, at the time that the server says: what a server did while it was
/// stopped, or before a connection ended, comes late. A server that is promoted ends the connection; it is made again.
class FailOverRun::Witness {
public:
    Witness(const testing::RedisServer& server, std::shared_ptr<history::Recorder> recorder)
        : redis_(server), recorder_(std::move(recorder)), thread_([this](const std::stop_token& end) { run(end); })
    {
    }

private:
    void run(const std::stop_token& end)
    {
        const auto wallMinusBoot = std::chrono::system_clock::now().time_since_epoch() - bootTime();
        redis_.setTimeout(500ms);
        for (bool listens = false; !end.stop_requested();) {
            try {
                listens = listens || redis_.command({"MONITOR"}).isStatus();
                const auto line = redis_.receive(20ms);
                if (line && line->isStatus()) {
                    write(line->text(), wallMinusBoot);
                }
            } catch (const std::exception&) {
                listens = false;
                redis_.disconnect();
                std::this_thread::sleep_for(1ms);
            }
        }
    }

    void write(const std::string& line, std::chrono::nanoseconds wallMinusBoot) const
    {
        const std::chrono::duration<double> at(std::strtod(line.c_str(), nullptr));
        for (auto& request : history::requestsOf(history::wordsOfMonitorLine(line))) {
            request.t = (std::chrono::duration_cast<std::chrono::nanoseconds>(at) - wallMinusBoot).count();
            recorder_->write(std::move(request));
        }
    }

    RawRedis redis_;
    std::shared_ptr<history::Recorder> recorder_;
    std::jthread thread_;
};

/// Asks servers for their role and who is a master, all the time, and writes down what is new. Records the streams of the
/// replicas; not those of masters, for WAIT would count its reader as a replica.
class FailOverRun::Watcher {
public:
    Watcher(const Site& site, std::shared_ptr<history::Recorder> recorder, const std::filesystem::path& folder)
        : site_(site), recorder_(std::move(recorder)), isRecorded_(site.servers.size()), named_(site.masters)
    {
        for (std::size_t i = 0; i < site.servers.size(); ++i) {
            const auto& server = *site.servers[i];
            ports_.push_back(std::to_string(server.port()));
            streams_.push_back(
                std::make_unique<history::TruthRecorder>(server, recorderOf(folder, "truth", i), static_cast<int>(i)));
        }
        std::copy_n(ports_.begin(), site.masters, named_.begin());
        for (std::size_t i = 0; i < site.servers.size(); ++i) {
            watch(*site.servers[i], {"ROLE"},
                  [this, i, role = std::string()](const Value& reply) mutable { takeRole(i, role, reply); });
        }
        for (const auto* namer : site.namers) {
            watch(*namer, site.question,
                  [this, before = named_](const Value& reply) mutable { takeNames(before, site_.portsNamed(reply)); });
        }
    }

    [[nodiscard]] std::size_t promotions() const noexcept { return promotions_; }
    /// Waits until the streams of all replicas are recorded.
    void awaitStreams() const
    {
        const auto replicas = std::ssize(site_.servers) - static_cast<std::ptrdiff_t>(site_.masters);
        if (!eventually([&] { return std::count(isRecorded_.begin(), isRecorded_.end(), true) == replicas; }, 15s)) {
            throw std::runtime_error("the streams of the replicas cannot be recorded");
        }
    }

private:
    /// Asks again and again, in a thread of its own; what does not answer is asked anew.
    void watch(const testing::RedisServer& server, RawRedis::Arguments question, std::function<void(const Value&)> take)
    {
        threads_.emplace_back([redis = RawRedis(server), question = std::move(question),
                               take = std::move(take)](const std::stop_token& end) mutable {
            redis.setTimeout(200ms);
            for (; !end.stop_requested(); std::this_thread::sleep_for(10ms)) {
                try {
                    take(redis.command(question));
                } catch (const std::exception&) {
                    redis.disconnect();
                }
            }
        });
    }

    void takeRole(std::size_t number, std::string& before, const Value& reply)
    {
        const auto role = reply.elements.at(0).text();
        if (role == "master" && before == "slave") {
            recorder_->write({.op = Op::promoted, .phase = Phase::invoke, .count = static_cast<std::int64_t>(number)});
        }
        before = role;
        record(number, role == "slave", role == "slave" && reply.elements.at(3).text() == "connected");
    }

    void record(std::size_t number, bool isReplica, bool hasLink)
    {
        auto& stream = *streams_[number];
        isRecorded_[number] = isRecorded_[number] && isReplica && !stream.failed();
        if (!isReplica) {
            stream.detach();
        } else if (hasLink && !isRecorded_[number]) {
            stream.attach();
            isRecorded_[number] = true;
        }
    }

    /// One that only learns of it later names none that is new.
    void takeNames(std::vector<std::string>& before, const std::vector<std::string>& now)
    {
        std::set<std::size_t> known;
        for (const auto& port : now) {
            const auto number = static_cast<std::size_t>(std::ranges::find(ports_, port) - ports_.begin());
            const auto office = number % site_.masters;
            const bool isNew =
                number < ports_.size() && known.insert(office).second && std::exchange(before[office], port) != port;
            const std::lock_guard lock(mutex_);
            if (isNew && named_[office] != port) {
                const auto replaced = std::ranges::find(ports_, std::exchange(named_[office], port)) - ports_.begin();
                ++promotions_;
                recorder_->write({.op = Op::promoted,
                                  .phase = Phase::ok,
                                  .count = static_cast<std::int64_t>(number),
                                  .error = std::to_string(replaced)});
            }
        }
    }

    const Site& site_;
    std::shared_ptr<history::Recorder> recorder_;
    std::vector<std::string> ports_;
    std::vector<std::unique_ptr<history::TruthRecorder>> streams_;
    std::vector<std::atomic<bool>> isRecorded_;
    std::mutex mutex_;
    std::vector<std::string> named_; ///< the port of each master
    std::atomic<std::size_t> promotions_{0};
    std::vector<std::jthread> threads_;
};

FailOverRun::FailOverRun(const Plan& plan, Site site)
    : plan_(plan),
      site_(std::move(site)),
      random_(plan.seed),
      progress_(plan.folder / "board"),
      recorder_(std::make_shared<history::Recorder>(plan.folder / "director.jsonl")),
      heartbeat_(recorder_)
{
    history::TruthRecorder::recordClock(*recorder_);
    for (std::size_t i = 0; i < site_.servers.size(); ++i) {
        witnesses_.push_back(std::make_unique<Witness>(*site_.servers[i], recorderOf(plan.folder, "requests", i)));
    }
    watcher_ = std::make_unique<Watcher>(site_, recorder_, plan.folder);
    watcher_->awaitStreams();
    startWorkers();
    requireRecovery("the start");
}

FailOverRun::~FailOverRun() = default;

void FailOverRun::startWorkers()
{
    for (std::size_t slot = 0; slot < plan_.processes; ++slot) {
        workers_.emplace_back(std::vector<std::string>{plan_.worker.string(), "--url", site_.url, "--durable-url",
                                                       site_.url + "?" + site_.durability + "&durability_within=500",
                                                       "--folder", plan_.folder.string(), "--slot",
                                                       std::to_string(slot), "--seed",
                                                       std::to_string(plan_.seed * 100 + slot), "--threads",
                                                       std::to_string(plan_.threads)},
                              plan_.folder / "workers.log");
    }
    if (plan_.redisson.empty()) {
        return;
    }
    timespec monotonic{};
    ::clock_gettime(CLOCK_MONOTONIC, &monotonic);
    const auto ahead = bootTime().count() - (monotonic.tv_sec * 1'000'000'000 + monotonic.tv_nsec);
    redisson_.emplace(std::vector<std::string>{"/usr/bin/env", "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
                                               "-Xmx128m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp",
                                               plan_.redisson.string() + "/*", "redislock.interop.Recorded", site_.url,
                                               plan_.folder.string(), std::to_string(ahead), plainLock("0"),
                                               plainLock("1")},
                      plan_.folder / "redisson.log");
}

std::size_t FailOverRun::promotions() const noexcept
{
    return watcher_->promotions();
}

bool FailOverRun::awaitPromotion(std::size_t before, std::chrono::milliseconds patience) const
{
    return eventually([&] { return watcher_->promotions() > before; }, patience);
}

void FailOverRun::sleep(int leastMs, int mostMs)
{
    std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution(leastMs, mostMs)(random_)));
}

bool FailOverRun::stop(testing::RedisServer& server, int leastMs)
{
    server.freeze();
    sleep(leastMs, 3000);
    server.thaw();
    sleep(0, 1500);
    return true;
}

bool FailOverRun::stopUntilItIsReplaced(testing::RedisServer& master)
{
    const bool isReplaced = isReplacedAfter([&] { master.freeze(); });
    master.thaw();
    sleep(0, 1500);
    return isReplaced;
}

/// Lets the site heal after the fault, and requires all processes to work again.
void FailOverRun::inject(const FailOverFault& fault, Injected& injected)
{
    const auto before = promotions();
    recorder_->write({.op = Op::fault, .phase = Phase::invoke, .error = fault.name});
    const bool hasHit = fault.inject();
    site_.heal();
    watcher_->awaitStreams();
    recorder_->write({.op = Op::fault, .phase = Phase::ok, .error = fault.name});
    if (!hasHit) {
        throw history::Refused(std::string("it had no effect: ") + fault.name);
    }
    auto& [times, failOvers] = injected[fault.name];
    ++times;
    failOvers += promotions() - before;
    requireRecovery(fault.name);
    sleep(300, 1500);
}

void FailOverRun::injectAll(std::vector<FailOverFault> faults, const std::string& only, std::chrono::seconds time,
                            Injected& injected)
{
    std::erase_if(faults, [&](const auto& fault) { return std::string(fault.name).find(only) == std::string::npos; });
    if (faults.empty()) {
        throw std::invalid_argument("no such fault: " + only);
    }
    const Stopwatch watch;
    for (std::size_t next = faults.size(); !Interruption::isAsked(); ++next) {
        if (next >= faults.size()) {
            if (watch.elapsed() >= time) {
                break;
            }
            std::shuffle(faults.begin(), faults.end(), random_);
            next = 0;
        }
        inject(faults[next], injected);
        std::cerr << std::chrono::floor<std::chrono::seconds>(watch.elapsed()).count() << " s: " << faults[next].name
                  << ", " << promotions() << " fail-overs\n";
    }
    if (promotions() == 0 && !Interruption::isAsked()) {
        throw history::Refused("there was no fail-over");
    }
}

void FailOverRun::finish()
{
    std::this_thread::sleep_for(4s); // a time without faults, in which everything has to work
    std::ofstream(plan_.folder / "end");
    progress_->ending = true;
    const auto all = [&](auto isSo) { return std::all_of(workers_.begin(), workers_.end(), isSo); };
    const auto slots = std::span(progress_->slots, workers_.size());
    if (!eventually([&] { return std::all_of(slots.begin(), slots.end(), [](auto& s) { return s.quiet.load(); }); },
                    20s)) {
        throw Broken("T9: a process did not come to an end");
    }
    progress_->leave = true;
    if (!all([](auto& worker) { return worker.awaitEnd(10s) && worker.ending() == "exit status 0"; })) {
        throw Broken("T9: a worker did not end well");
    }
    if (redisson_ && !(redisson_->awaitEnd(20s) && redisson_->ending() == "exit status 0")) {
        throw history::Refused("Redisson's process did not end well; see redisson.log");
    }
    watcher_.reset();
    history::TruthRecorder::recordClock(*recorder_);
}

void FailOverRun::requireRecovery(const std::string& after)
{
    const auto since = bootTime().count();
    for (std::size_t slot = 0; slot < workers_.size(); ++slot) {
        const auto& place = progress_->slots[slot];
        if (!eventually([&] { return std::min(place.recovered, place.groupsRecovered) > since; }, 15s)) {
            throw Broken("T9: process " + std::to_string(slot) + " locked and freed nothing after: " + after +
                         (workers_[slot].runs() ? "; it runs" : "; it ended: " + workers_[slot].ending()));
        }
    }
}

} // namespace redislock::test::chaos
