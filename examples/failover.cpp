/// @file
/// A lock that is lost in a fail-over: the master acknowledges it, and is killed before a replica has it.
///
/// The new master does not know the lock, and grants it to the next client. Nothing can undo that, but the holder
/// learns of the loss as soon as the new master answers, and stops. If each grant needs a replica, no lock is lost: a
/// master without replicas grants it to nobody.
#include "failover/picture.hpp"
#include "failover/servers.hpp"
#include "shared/demonstration.hpp"

#include <redislock/redislock.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <future>
#include <iterator>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using failover::Shown;
using failover::Time;

constexpr int exitNotShown = 1;
constexpr Time longWork = 4500ms;   ///< of the holder, if nobody interrupts it
constexpr Time shortWork = 800ms;   ///< of the next one
constexpr double mostSeconds = 0.5; ///< from the new master to the end of the holder's work
constexpr const char* lockName = "failover:report";

struct Scene {
    std::string_view title;
    std::string_view lesson;
    bool looks;                            ///< whether the holder looks at its stop token
    redislock::Durability durability = {}; ///< of the lock
};

constexpr Scene scenes[] = {
    {"The holder does not look", "It finishes its work, although another client has the lock.", false},
    {"The holder looks at its stop token", "It stops as soon as the new master says that the lock is gone.", true},
    {"Each grant needs a replica",
     "The old master, cut off from its replicas, grants nothing; the new master has a replica.", true,
     redislock::Durability::replicas(1, 200ms)},
};

/// Works under the lock. @param stop empty: nothing interrupts the work.
template <class Now>
failover::Span work(Now now, Time time, const std::stop_token& stop)
{
    const Time from = now();
    while (now() < from + time && !stop.stop_requested()) {
        std::this_thread::sleep_for(1ms); // a small piece of work
    }
    return {from, now()};
}

Shown play(const Scene& scene, failover::Servers& servers)
{
    servers.awaitReady();
    servers.holdReplicasBack();
    const redislock::Client first(servers.config());
    const redislock::Client second(servers.config());
    Shown shown{.title = scene.title, .lesson = scene.lesson};
    const auto now = [start = std::chrono::steady_clock::now()] {
        return Time(std::chrono::steady_clock::now() - start);
    };
    const bool isDurable = scene.durability != redislock::Durability::none();
    std::promise<void> begun;
    auto holder = std::async(std::launch::async, [&] {
        if (isDurable) {
            begun.set_value(); // for now the lock is granted to nobody
        }
        const redislock::LockGuard held(first.getLock(lockName, scene.durability));
        if (!isDurable) {
            begun.set_value();
        }
        const std::stop_callback told(held.stopToken(), [&] { shown.toldAt = now(); });
        shown.holder = work(now, isDurable ? shortWork : longWork, scene.looks ? held.stopToken() : std::stop_token());
    });
    begun.get_future().get();
    auto next = std::async(std::launch::async, [&] {
        const redislock::LockGuard held(second.getLock(lockName, scene.durability)); // waits
        shown.next = work(now, shortWork, held.stopToken());
    });
    std::this_thread::sleep_for(700ms);
    servers.killMaster();
    shown.killedAt = now();
    servers.awaitNewMaster();
    shown.newMasterAt = now();
    if (isDurable) {
        servers.letReplicasIn();
    }
    holder.get();
    next.get();
    return shown;
}

/// Whether a scene showed what it is there for.
bool isShown(const Scene& scene, const Shown& shown)
{
    if (scene.durability != redislock::Durability::none()) {
        const bool waited = std::min(shown.holder.from, shown.next.from) >= shown.newMasterAt;
        return waited && shown.toldAt == Time::zero() && shown.both().seconds() == 0;
    }
    const bool isTold = shown.toldAt != Time::zero() && shown.untilTold() < mostSeconds;
    return isTold && scene.looks == (shown.both().seconds() < mostSeconds);
}

void writePicture(const std::vector<Shown>& all, const std::string& path)
{
    std::ofstream file(path, std::ios::trunc);
    file << failover::pictureOf(all);
    file.close();
    if (!file) {
        throw std::runtime_error(fmt::format("the picture cannot be written to {}", path));
    }
    fmt::print("\nA picture of who worked when: {}\n", path);
}

int run(const std::string& picture)
{
    fmt::print("Kills a master that has acknowledged a lock before a replica has it.\n\n");
    std::fflush(stdout);
    std::vector<failover::Servers> servers(std::size(scenes)); // the Sentinels of all find each other at the same time
    fmt::print("{:<36} {:>21} {:>25}\n", "", "two work at once for", "holder notified after");
    std::vector<Shown> all;
    bool areShown = true;
    for (const auto& scene : scenes) {
        const auto& shown = all.emplace_back(play(scene, servers[all.size()]));
        const bool isTold = shown.toldAt != Time::zero();
        fmt::print("{:<36} {:>19.2f} s {:>25}\n", shown.title, shown.both().seconds(),
                   isTold ? fmt::format("{:.2f} s", shown.untilTold()) : "lock not lost");
        std::fflush(stdout);
        areShown = areShown && isShown(scene, shown);
    }
    if (!picture.empty()) {
        writePicture(all, picture);
    }
    return areShown ? 0 : exitNotShown;
}

} // namespace

int main(int argc, char** argv)
{
    std::string picture;
    CLI::App app(
        "failover: loses a lock with its master, which is killed before a replica has the lock; starts its own "
        "servers.\n"
        "Exit status: 0 if every scene showed what it is there for; 1 if one did not; 2 after any other "
        "error.");
    app.add_option("--picture", picture, "also write a picture of who worked when, as SVG")->type_name("FILE");
    return example::demonstrate(app, "failover", argc, argv, [&] { return run(picture); });
}
