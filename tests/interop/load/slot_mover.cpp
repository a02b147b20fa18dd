#include "interop/load/slot_mover.hpp"

#include "support/eventually.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace redislock::test {

using namespace std::chrono_literals;

SlotMover::SlotMover(std::vector<std::string> names, std::chrono::milliseconds most, std::uint64_t seed)
    : names_(std::move(names)), most_(most), random_(seed), owner_(cluster_.ownerOf(names_.front()))
{
    // A replica takes over when it is told to, and not because a busy machine made its master late: that loses writes.
    for (std::size_t i = 0; i < cluster_.size(); ++i) {
        RawRedis(cluster_.node(i)).command({"CONFIG", "SET", "cluster-replica-no-failover", "yes"});
        RawRedis(cluster_.node(i)).command({"CONFIG", "SET", "cluster-node-timeout", "2000"});
    }
    thread_ = std::jthread([this](const std::stop_token& end) { run(end); });
}

std::unique_lock<std::mutex> SlotMover::tryPause()
{
    std::unique_lock pause(moving_, std::try_to_lock);
    if (pause && !failed_.empty()) {
        throw std::runtime_error("a slot could not be moved: " + failed_);
    }
    return pause;
}

void SlotMover::stop()
{
    if (thread_.joinable()) {
        thread_.request_stop();
        thread_.join();
    }
}

void SlotMover::run(const std::stop_token& end)
{
    Stopwatch sinceSwitchOver;
    while (!end.stop_requested()) {
        sleep(most_);
        const std::lock_guard lock(moving_);
        try {
            const auto& name = names_[random_() % names_.size()];
            if (sinceSwitchOver.elapsed() > 10s && random_() % 4 == 0) { // a node does not try again earlier
                switchOver(name);
                sinceSwitchOver.restart();
            } else {
                move(name);
            }
            owner_ = cluster_.ownerOf(names_.front());
        } catch (const std::exception& error) {
            failed_ = error.what();
            return;
        }
    }
}

void SlotMover::move(const std::string& name)
{
    const auto from = cluster_.ownerOf(name);
    auto to = from;
    while (to == from) {
        to = cluster_.ownerOf("any" + std::to_string(random_() % 100));
    }
    cluster_.open(name, from, to);
    if (random_() % 2 == 0) {
        auto keys = cluster_.keysAt(name, from);
        std::ranges::shuffle(keys, random_);
        keys.resize(random_() % (keys.size() + 1));
        for (const auto& key : keys) {
            cluster_.moveKey(key, from, to);
        }
        sleep(2s);
    }
    const auto isEmpty = [&] {
        cluster_.moveKeys(name, from, to); // a thousand at most
        return cluster_.keysAt(name, from).empty();
    };
    if (!eventually(isEmpty)) {
        throw std::runtime_error("keys stay behind");
    }
    cluster_.close(name, to);
    ++moves_;
}

// A replica may give it up; then nothing has happened.
void SlotMover::switchOver(const std::string& name)
{
    const auto next = cluster_.replicaOf(cluster_.ownerOf(name));
    const auto& replica = cluster_.node(next);
    RawRedis(replica).command({"CLUSTER", "FAILOVER"});
    if (eventually([&] { return RawRedis(replica).info("role") == "master"; }, 8s)) {
        cluster_.awaitOwner(name, next);
        ++switchOvers_;
    }
}

void SlotMover::sleep(std::chrono::milliseconds most)
{
    std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution(0L, most.count())(random_)));
}

} // namespace redislock::test
