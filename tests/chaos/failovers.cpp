#include "chaos/failovers.hpp"

#include "history/history.hpp"
#include "history/request_recorder.hpp"
#include "history/truth_recorder.hpp"
#include "support/deployments.hpp"
#include "support/eventually.hpp"
#include "support/interruption.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
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

/// Writes down which server executes which request, at the time that the server says: what a server did while it was
/// stopped, or before a connection ended, comes late. A server that is promoted ends the connection; it is made again.
class Witness {
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

/// Asks servers for their role and Sentinels for the master, all the time, and writes down what is new. Records the
/// streams of the replicas; not that of the master, for WAIT would count its reader as a replica.
class Watcher {
public:
    Watcher(const SentinelDeployment& deployment, std::shared_ptr<history::Recorder> recorder,
            const std::filesystem::path& folder)
        : recorder_(std::move(recorder)), named_(std::to_string(deployment.servers.front().port()))
    {
        for (const auto& server : deployment.servers) {
            const auto number = ports_.size();
            ports_.push_back(std::to_string(server.port()));
            streams_.push_back(std::make_unique<history::TruthRecorder>(server, recorderOf(folder, "truth", number),
                                                                        static_cast<int>(number)));
        }
        for (std::size_t i = 0; i < deployment.servers.size(); ++i) {
            watch(deployment.servers[i], {"ROLE"},
                  [this, i, role = std::string()](const Value& reply) mutable { takeRole(i, role, reply); });
        }
        for (const auto& sentinel : deployment.sentinels) {
            watch(sentinel.server(), {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"},
                  [this, port = ports_.front()](const Value& reply) mutable { takeName(port, reply); });
        }
    }

    /// How many masters were named that were not before.
    [[nodiscard]] std::size_t promotions() const noexcept { return promotions_; }
    /// Waits until the streams of two replicas are recorded.
    void awaitStreams() const
    {
        if (!eventually([&] { return std::count(isRecorded_.begin(), isRecorded_.end(), true) == 2; }, 10s)) {
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

    /// A Sentinel that only learns of it later names none that is new.
    void takeName(std::string& before, const Value& reply)
    {
        const auto port = reply.elements.at(1).text();
        const bool isNew = port != std::exchange(before, port);
        const std::lock_guard lock(mutex_);
        if (isNew && port != named_) {
            named_ = port;
            ++promotions_;
            recorder_->write({.op = Op::promoted,
                              .phase = Phase::ok,
                              .count = std::find(ports_.begin(), ports_.end(), port) - ports_.begin()});
        }
    }

    std::shared_ptr<history::Recorder> recorder_;
    std::vector<std::string> ports_;
    std::vector<std::unique_ptr<history::TruthRecorder>> streams_;
    std::array<std::atomic<bool>, 3> isRecorded_{};
    std::mutex mutex_;
    std::string named_;
    std::atomic<std::size_t> promotions_{0};
    std::vector<std::jthread> threads_;
};

/// A deployment, its worker processes, and the record of everything.
class FailOverRun {
public:
    explicit FailOverRun(const Plan& plan)
        : plan_(plan),
          random_(plan.seed),
          progress_(plan.folder / "board"),
          recorder_(std::make_shared<history::Recorder>(plan.folder / "director.jsonl")),
          heartbeat_(recorder_)
    {
        history::TruthRecorder::recordClock(*recorder_);
        for (std::size_t i = 0; i < deployment.servers.size(); ++i) {
            const auto& server = deployment.servers[i];
            witnesses_.push_back(std::make_unique<Witness>(server, recorderOf(plan.folder, "requests", i)));
        }
        watcher_.emplace(deployment, recorder_, plan.folder);
        watcher_->awaitStreams();
        const auto url = deployment.url();
        for (std::size_t slot = 0; slot < plan.processes; ++slot) {
            workers_.emplace_back(std::vector<std::string>{plan.worker.string(), "--url", url, "--durable-url",
                                                           url + "?durability=replicas:2&durability_within=500",
                                                           "--folder", plan.folder.string(), "--slot",
                                                           std::to_string(slot), "--seed",
                                                           std::to_string(plan.seed * 100 + slot), "--threads",
                                                           std::to_string(plan.threads)},
                                  plan.folder / "workers.log");
        }
        requireRecovery("the start");
    }

    /// Whether there has been a fail-over since then, or comes soon.
    [[nodiscard]] bool awaitPromotion(std::size_t before, std::chrono::milliseconds patience = 30s)
    {
        return eventually([&] { return watcher_->promotions() > before; }, patience);
    }
    [[nodiscard]] std::size_t promotions() const noexcept { return watcher_->promotions(); }
    bool stop(testing::RedisServer& server, int leastMs)
    {
        server.freeze();
        sleep(leastMs, 3000);
        server.thaw();
        return true;
    }
    void sleep(int least, int most)
    {
        std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution(least, most)(random_)));
    }
    testing::RedisServer& master() { return deployment.servers.at(deployment.master()); }
    testing::RedisServer& someReplica()
    {
        return deployment.servers.at((deployment.master() + 1 + random_() % 2) % deployment.servers.size());
    }
    testing::RedisServer& someSentinel() { return deployment.sentinels.at(random_() % 3).server(); }
    std::mt19937_64& random() noexcept { return random_; }

    /// Injects a fault, lets the deployment heal, and requires all processes to work again.
    template <class Fault>
    void inject(const Fault& fault, Injected& injected)
    {
        const auto before = promotions();
        recorder_->write({.op = Op::fault, .phase = Phase::invoke, .error = fault.name});
        const bool hasHit = fault.inject(*this);
        deployment.settle();
        (void)deployment.heal();
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

    void finish()
    {
        std::this_thread::sleep_for(4s); // a time without faults, in which everything has to work
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
        watcher_.reset();
        history::TruthRecorder::recordClock(*recorder_);
    }

    SentinelDeployment deployment;

private:
    void requireRecovery(const std::string& after)
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

    const Plan plan_;
    std::mt19937_64 random_;
    Progress progress_;
    std::shared_ptr<history::Recorder> recorder_;
    Heartbeat heartbeat_;
    std::vector<std::unique_ptr<Witness>> witnesses_;
    std::optional<Watcher> watcher_;
    std::vector<testing::detail::ChildProcess> workers_;
};

struct FailOverFault {
    const char* name;
    /// @return whether it took effect
    bool (*inject)(FailOverRun& run);
};

bool failOverByCommand(FailOverRun& run)
{
    const auto before = run.promotions();
    const auto first = run.random()();
    bool isDone = false;
    for (std::size_t i = 0; i < 6 && !isDone; ++i) { // one that was stopped for two seconds does nothing for thirty
        RawRedis sentinel(run.deployment.sentinels.at((first + i) % 3).server());
        isDone = !sentinel.command({"SENTINEL", "FAILOVER", "main"}).isError() && run.awaitPromotion(before, 6s);
    }
    return isDone;
}

bool killMaster(FailOverRun& run)
{
    const auto before = run.promotions();
    run.master().kill();
    return run.awaitPromotion(before);
}

/// A master that is replaced meanwhile goes on as one until somebody tells it.
bool stopMaster(FailOverRun& run)
{
    run.stop(run.master(), 1000);
    run.sleep(0, 1500);
    return true;
}

bool stopMasterUntilItIsReplaced(FailOverRun& run)
{
    const auto before = run.promotions();
    auto& master = run.master();
    master.freeze();
    const bool isReplaced = run.awaitPromotion(before);
    master.thaw();
    run.sleep(0, 1500);
    return isReplaced;
}

bool stopReplica(FailOverRun& run)
{
    return run.stop(run.someReplica(), 300);
}

bool stopSentinel(FailOverRun& run)
{
    return run.stop(run.someSentinel(), 300);
}

bool killSentinel(FailOverRun& run)
{
    auto& sentinel = run.someSentinel();
    sentinel.kill();
    run.sleep(100, 1000);
    sentinel.restart();
    return true;
}

} // namespace

void failOver(const Plan& plan, std::chrono::seconds time, const std::string& only, Injected& injected)
{
    std::vector<FailOverFault> faults{
        {"SENTINEL FAILOVER", failOverByCommand}, {"kill -9 of the master", killMaster},
        {"SIGSTOP of the master", stopMaster},    {"SIGSTOP until a fail-over", stopMasterUntilItIsReplaced},
        {"SIGSTOP of a replica", stopReplica},    {"kill -9 of a Sentinel", killSentinel},
        {"SIGSTOP of a Sentinel", stopSentinel},
    };
    std::erase_if(faults, [&](const auto& fault) { return std::string(fault.name).find(only) == std::string::npos; });
    if (faults.empty()) {
        throw std::invalid_argument("no such fault: " + only);
    }
    FailOverRun run(plan);
    const Stopwatch watch;
    for (std::size_t next = faults.size(); !Interruption::isAsked(); ++next) {
        if (next >= faults.size()) { // each once, in random order, and again
            if (watch.elapsed() >= time) {
                break;
            }
            std::shuffle(faults.begin(), faults.end(), run.random());
            next = 0;
        }
        run.inject(faults[next], injected);
        std::cerr << std::chrono::floor<std::chrono::seconds>(watch.elapsed()).count() << " s: " << faults[next].name
                  << ", " << run.promotions() << " fail-overs\n";
    }
    if (run.promotions() == 0 && !Interruption::isAsked()) {
        throw history::Refused("there was no fail-over");
    }
    run.finish();
}

} // namespace redislock::test::chaos
