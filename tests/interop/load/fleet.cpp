#include "interop/load/fleet.hpp"

#include "interop/kinds.hpp"
#include "support/eventually.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

namespace redislock::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds redissonsClocks{30'000}; // doc/keys.md: times of ours are longer by this
constexpr milliseconds unknownAllowance{300'000};
constexpr seconds longestOfTheDead{60};
constexpr std::size_t mostRecords = 128; // records of requests of one client
constexpr seconds slack{60};             // for a busy machine
constexpr std::array<std::string_view, 6> mayBeLeft{
    "redislock_request:",   "redislock_places:",    "redisson_unlock_latch:",
    "redisson_lock_token:", "redisson_lock_queue:", "redisson_lock_timeout:"};
constexpr auto tableRow = "{:<26}{:<14}{:>10}{:>9}{:>9}{:>15}{:>14}{:>10}{:>10}{:>7}{:>6}{:>12}\n";

Micros now()
{
    return std::chrono::duration_cast<Micros>(std::chrono::steady_clock::now().time_since_epoch());
}

std::vector<std::string> namesIn(const std::string& list)
{
    std::istringstream text(list);
    std::vector<std::string> names;
    for (std::string name; std::getline(text, name, ',');) {
        names.push_back(name);
    }
    return names;
}

std::string inSeconds(Micros time)
{
    return fmt::format("{:.3f} s", static_cast<double>(time.count()) / 1e6);
}

} // namespace

Fleet::Fleet(LoadKind kind, const FleetSize& size) : kind_(std::move(kind)), size_(size)
{
    if (size_.moves) {
        // A waiter of Redisson's that has lost its subscription holds up a fair queue for seconds.
        mover_ = std::make_unique<SlotMover>(namesIn(kind_.ours), kind_.name == "fairLock" ? 10s : 3s, *size_.moves);
        for (std::size_t i = 0; i < mover_->cluster().size(); ++i) {
            redis_.emplace_back(mover_->cluster().node(i));
        }
    } else {
        servers_.resize(3);
        for (const auto& server : servers_) {
            redis_.emplace_back(server);
        }
    }
    if (kind_.name == "semaphore" || kind_.name == "permitExpirableSemaphore") {
        redis().command({"SET", kind_.ours, std::to_string(kind_.permits)});
    }
    auto versions = redissonVersions();
    std::erase_if(versions, [&](const std::string& each) {
        return std::stoi(each) < kind_.since || (!size_.redisson.empty() && each != size_.redisson);
    });
    if (size_.isMixed) {
        versions.insert(versions.begin(), "");
    } else {
        size_.processes = size_.processes * (versions.size() + 1) / versions.size();
    }
    for (const auto& version : versions) {
        for (std::size_t i = 0; i < size_.processes; ++i) {
            berths_.push_back({.redisson = version});
            start(berths_.back());
        }
    }
    lastIn_ = now();
}

void Fleet::start(Berth& berth)
{
    PeerOptions options{.redisson = berth.redisson, .urls = {}, .watchdog = fleetLease, .place = fleetPlace};
    if (!berth.redisson.empty()) {
        // If a call of Redisson's gives up, it may have the lock all the same, which its thread then enters again and
        // never leaves.
        options.patience = 30s;
    }
    options.urls = urls(berth);
    for (int attempt = 1; !berth.peer; ++attempt) {
        try {
            berth.peer = std::make_unique<Peer>(options);
        } catch (const std::runtime_error&) { // starting a JVM can take more than a minute on a busy machine
            if (attempt == 3) {
                throw;
            }
        }
    }
    constexpr std::array<std::string_view, 3> styles{"keep", "object", "client"};
    for (std::size_t i = 0; i < size_.threads; ++i) {
        const auto thread = berth.peer->newThread();
        const auto style =
            styles.at((i + (&berth == &berths_.front() ? 1 : 0)) % styles.size()); // all three with two threads
        const auto& name = berth.redisson.empty() ? kind_.ours : kind_.theirs;
        berth.peer->send(thread, fmt::format("{} load {} {} {} {}", kind_.name, name, style, size_.hold, size_.pause));
        berth.working.insert(thread);
    }
}

std::vector<std::string> Fleet::urls(const Berth& berth) const
{
    if (!mover_) {
        std::vector<std::string> all;
        for (const auto& server : servers_) {
            all.push_back(server.url());
        }
        return all;
    }
    // The sharded subscriptions of Redisson 4 hardly survive a move: every other process has classic ones.
    const bool isClassic = (&berth - berths_.data()) % 2 == 1;
    return {mover_->cluster().url() + (berth.redisson.empty() ? "?notifications=both"
                                       : isClassic            ? "?notifications=classic"
                                                              : "")};
}

// --- Reports of the processes
// ----------------------------------------------------------------------------------------------------

void Fleet::watch()
{
    for (std::size_t i = 0; i < berths_.size(); ++i) {
        takeIn(i);
        if (!berths_[i].peer->runs()) {
            throw std::runtime_error("a process of " + nameOf(i) + " ended:\n" + berths_[i].peer->lastWords());
        }
    }
    if (!mover_) {
        look();
    } else if (const auto pause = mover_->tryPause()) {
        look();
    }
}

void Fleet::look()
{
    giveBackPermits(std::exchange(owed_, 0), "");
    if (kind_.name == "fairLock" && size_.isMixed) {
        lookAtOrder();
    }
    if (now() >= nextLook_) {
        nextLook_ = now() + 1s;
        takeOutTheDead();
        lookAtKeys();
        settlePermits();
    }
}

void Fleet::lookAtOrder()
{
    queue_.look(redis(), kind_.ours, [this](const std::string& id) { return clients_.contains(id); });
    for (; passed_ < queue_.passed().size(); ++passed_) {
        violate(0, queue_.passed()[passed_]);
    }
    for (; outstayed_ < queue_.outstayed().size(); ++outstayed_) {
        violate(0, queue_.outstayed()[outstayed_]);
    }
    if (queue_.furthest() > mostAhead() && !toldOfTimes_) {
        toldOfTimes_ = true;
        std::ostringstream queue;
        queue << redis().command({"ZRANGE", "redisson_lock_timeout:{" + kind_.ours + "}", "0", "-1", "WITHSCORES"})
              << redis().command({"HGETALL", "redislock_places:{" + kind_.ours + "}"});
        violate(0, fmt::format("a time is {} ahead, more than {}: {}", inSeconds(queue_.furthest()),
                               inSeconds(mostAhead()), queue.str()));
    }
}

void Fleet::takeIn(std::size_t berth)
{
    for (const auto& [thread, line] : berths_[berth].peer->told()) {
        told(berth, thread, line);
    }
}

void Fleet::told(std::size_t berth, const std::string& thread, const Answer& line)
{
    auto& at = berths_[berth];
    if (line.how == "client") {
        clients_[line.value] = berth;
    } else if (line.how == "in") {
        const auto waited = Micros(std::stol(line.value));
        at.inside[thread] = {.place = berth, .in = line.elapsed, .waited = waited, .reads = line.value.ends_with('r')};
        lastIn_ = now();
    } else if (line.how == "out") {
        auto mine = at.inside.extract(thread);
        mine.mapped().out = line.elapsed;
        at.last[thread] = turns_.size();
        turns_.push_back(mine.mapped());
    } else if (line.how == "lost" && thread != "observer") {
        ++losses_[berth];
        // In a cluster no write is lost, and all turns count, but those that Redisson 3 takes without a grant.
        turns_.at(at.last.at(thread)).lost = !mover_ || at.redisson.starts_with("3.");
        if (mover_ && at.redisson.empty()) {
            violate(berth, fmt::format("{} lost: {}", thread, line.value));
        } else {
            mayHaveHeld_ += mover_ ? 1 : 0; // its permit may not have come back
            remarks_.push_back(
                fmt::format("{} {}: lost at {}: {}", nameOf(berth), thread, inSeconds(line.elapsed), line.value));
        }
    } else if (line.how == "failed") { // its request may have been granted all the same
        ++losses_[berth];
        ++mayHaveHeld_;
        remarks_.push_back(fmt::format("{} {}: failed: {}", nameOf(berth), thread, line.value));
    } else if (line.how == "lost" || line.how == "risk") {
        remarks_.push_back(
            fmt::format("{} observer at {}: {} {}", nameOf(berth), inSeconds(line.elapsed), line.how, line.value));
    } else {
        at.working.erase(thread);
        if (!ending_ || line.how != "ok") {
            violate(berth, fmt::format("{} ended: {} {}", thread, line.how, line.value));
        }
    }
}

void Fleet::kill(std::size_t berth)
{
    auto& at = berths_[berth];
    const auto moment = now(); // the process lives: a thread inside stays there until its lease is over
    at.peer->kill();
    takeIn(berth);
    at.peer.reset();
    killed_.push_back(moment);
    ++at.kills;
    const auto held = at.inside.size();
    for (auto& [thread, turn] : at.inside) {
        turn.out = std::max(moment, turn.in);
        turns_.push_back(turn);
    }
    at.inside.clear();
    std::erase_if(clients_, [&](const auto& each) { return each.second == berth; });
    if (at.redisson.empty()) {
        ++mayKeepRecords_;
    }
    mayHaveHeld_ += at.working.size() - held;
    at.working.clear();
    owed_ += held;
    start(at);
}

// --- Permits of the dead
// -----------------------------------------------------------------------------------------------

// Only the program gives back the permits of dead processes.
void Fleet::giveBackPermits(std::size_t count, const std::string& why)
{
    if (kind_.name != "semaphore" || count == 0) {
        return;
    }
    const auto free = redis().command({"INCRBY", kind_.ours, std::to_string(count)}).integer();
    for (const auto* publish : {"PUBLISH", "SPUBLISH"}) {
        redis().command({publish, "redisson_sc:{" + kind_.ours + "}", std::to_string(free)});
    }
    if (!why.empty()) {
        remarks_.push_back(fmt::format("{} permits of the dead were given back {}", count, why));
    }
}

// If nobody has come in for long, permits are missing that were granted to threads that were killed before they could
// report it.
void Fleet::settlePermits()
{
    const auto isInside = [](const Berth& each) { return !each.inside.empty(); };
    if (kind_.name != "semaphore" || now() < lastIn_ + 10s || std::ranges::any_of(berths_, isInside)) {
        return;
    }
    lastIn_ = now();
    const auto free = std::stol(redis().get(kind_.ours).value_or("0"));
    const auto missing = static_cast<long>(kind_.permits) - free;
    if (missing < 0 || missing > static_cast<long>(mayHaveHeld_)) {
        violate(0, fmt::format("{} permits are free of {}, nobody is inside", free, kind_.permits));
    } else if (missing > 0) {
        mayHaveHeld_ -= static_cast<std::size_t>(missing);
        giveBackPermits(static_cast<std::size_t>(missing), "when nobody came in");
    }
}

// --- The keys in Redis
// --------------------------------------------------------------------------------------------------

std::vector<RawRedis*> Fleet::masters()
{
    std::vector<RawRedis*> masters;
    for (auto& each : redis_) {
        if (!mover_ || each.info("role") == "master") {
            masters.push_back(&each);
        }
    }
    return masters;
}

void Fleet::lookAtKeys()
{
    std::size_t records = 0;
    for (auto* server : masters()) {
        const auto keys = server->command({"EVAL",
                                           "local r = {} for _, k in ipairs(redis.call('KEYS', '*')) do "
                                           "r[#r + 1] = {k, redis.call('PTTL', k)} end return r",
                                           "0"});
        for (const auto& each : keys.elements) {
            const auto& key = each.elements.at(0).text();
            records += key.starts_with("redislock_request:") ? 1 : 0;
            if (each.elements.at(1).integer() == -1 && !mayLast(key)) {
                violate(0, key + " has no time to live");
            }
        }
    }
    const auto clients = 1 + size_.threads; // of a process of ours, at most
    const auto processes = size_.processes + mayKeepRecords_;
    recordBound_ = std::max(recordBound_, mostRecords * clients * processes);
    records_ = std::max(records_, records);
    if (records > mostRecords * clients * processes) {
        violate(0, fmt::format("{} records of requests, of {} processes", records, processes));
    }
}

// doc/keys.md lists all such keys.
bool Fleet::mayLast(const std::string& key)
{
    if (key.starts_with("redisson_lock_token:") ||
        (kind_.permits > 1 && (key == kind_.ours || key == "{" + kind_.ours + "}:timeout"))) {
        return true;
    }
    if (!key.starts_with("redisson_lock_queue:") && !key.starts_with("redisson_lock_timeout:")) {
        return false;
    }
    // While a waiter of Redisson's is queued; ours renew the times to live when they ask next.
    const auto queue = lookAtQueue(redis(), kind_.ours);
    if (std::ranges::all_of(queue.waiters, &QueueLook::Waiter::isOurs) && queue.timeToLive == milliseconds(-1)) {
        return now() < withoutRedisson_.value_or(now()) + 2 * fleetPlace;
    }
    withoutRedisson_ = now();
    return true;
}

// --- The end
// -----------------------------------------------------------------------------------------------------------

std::size_t Fleet::working() const
{
    std::size_t sum = 0;
    for (const auto& berth : berths_) {
        sum += berth.working.size();
    }
    return sum;
}

// The end of the hold, a place of ours, and Redisson's allowance for each of its waiters, one of which was first when
// our scripts first saw it.
Micros Fleet::mostAhead() const
{
    const auto redissons = static_cast<long>(size_.threads * (berths_.size() - size_.processes));
    return fleetLease + fleetPlace + redissonsClocks + unknownAllowance + fleetPlace * (redissons + 1);
}

// According to doc/keys.md a killed waiter keeps its place for this time, and a killed holder the lock for its lease.
Micros Fleet::costOfADeath() const
{
    return fleetLease +
           (kind_.name == "fairLock" ? std::max<Micros>(fleetPlace + redissonsClocks, longestOfTheDead) : 0s);
}

// Removes dead waiters of Redisson's that have much time left, after noting the time: otherwise they would hold up the
// queue for minutes.
void Fleet::takeOutTheDead()
{
    if (kind_.name != "fairLock") {
        return;
    }
    const auto of = [&](const char* prefix) { return prefix + kind_.ours + "}"; };
    for (const auto& waiter : lookAtQueue(redis(), kind_.ours).waiters) {
        if (!waiter.isOurs && waiter.ahead > longestOfTheDead &&
            !clients_.contains(waiter.holder.substr(0, waiter.holder.find(':')))) {
            remarks_.push_back(
                fmt::format("a dead waiter of Redisson's would have kept its place for {}", inSeconds(waiter.ahead)));
            redis().command({"LREM", of("redisson_lock_queue:{"), "0", waiter.holder});
            redis().command({"ZREM", of("redisson_lock_timeout:{"), waiter.holder});
        }
    }
}

void Fleet::end()
{
    ending_ = true;
    if (mover_) {
        mover_->stop();
    }
    for (auto& berth : berths_) {
        berth.peer->send("end", "end load all at_once");
    }
    const auto deadline = now() + costOfADeath() + slack;
    while (working() > 0 && now() < deadline) {
        watch();
        std::this_thread::sleep_for(5ms);
    }
    for (std::size_t i = 0; i < berths_.size(); ++i) {
        for (const auto& thread : berths_[i].working) {
            const auto what = thread + " still waits long after everybody else has ended";
            if (mover_ && !berths_[i].redisson.empty()) {
                remarks_.push_back(nameOf(i) + ' ' + what);
            } else {
                violate(i, what);
            }
        }
        berths_[i].peer->kill();
    }
    judgeRest();
}

void Fleet::judgeRest()
{
    giveBackPermits(std::exchange(owed_, 0), "");
    const auto free = [&] { return std::stol(redis().get(kind_.ours).value_or("0")); };
    if (kind_.name == "semaphore") {
        const auto missing = static_cast<long>(kind_.permits) - free();
        if (missing < 0 || missing > static_cast<long>(mayHaveHeld_)) {
            violate(0, fmt::format("{} permits are left of {}", free(), kind_.permits));
        }
    } else if (kind_.name == "permitExpirableSemaphore") {
        const auto taken = redis().command({"ZCARD", "{" + kind_.ours + "}:timeout"}).integer();
        if (free() + taken != static_cast<long>(kind_.permits)) {
            violate(0, fmt::format("{} permits are free and {} taken of {}", free(), taken, kind_.permits));
        }
    } else {
        const auto isHeld = [&] {
            return std::ranges::any_of(redis_, [](RawRedis& each) {
                return !each.command({"KEYS", "*"}).elements.empty() &&
                       each.command({"EVAL", "return #redis.call('KEYS', 'load*')", "0"}).integer() > 0;
            });
        };
        if (!eventually([&] { return !isHeld(); }, fleetLease + slack)) {
            violate(0, "a lock is held when all have gone, and longer than a lease");
        }
    }
    lookAtKeys();
    std::map<std::string, std::size_t> left;
    for (auto* each : masters()) {
        for (const auto& key : each->command({"KEYS", "*"}).elements) {
            const auto name = key.text();
            const bool isKnown = std::ranges::any_of(mayBeLeft, [&](auto known) { return name.starts_with(known); }) ||
                                 name.ends_with(":redislock_writer") || mayLast(name);
            ++left[name.substr(0, name.find(':'))];
            if (!isKnown) {
                violate(0, name + " was left");
            }
        }
    }
    for (const auto& [name, count] : left) {
        remarks_.push_back(fmt::format("left: {} {}", count, name));
    }
}

void Fleet::violate(std::size_t berth, const std::string& what)
{
    if (!size_.isMixed) {
        remarks_.push_back(fmt::format("Redisson alone ({}): {}", nameOf(berth), what));
        return;
    }
    ++violations_;
    ++violationsOf_[berth];
    remarks_.push_back(fmt::format("VIOLATION ({}): {}", nameOf(berth), what));
    std::cerr << kind_.name << ": " << remarks_.back() << std::endl; // NOLINT: at once
}

std::string Fleet::nameOf(std::size_t berth) const
{
    const auto& redisson = berths_.at(berth).redisson;
    return fmt::format("{} #{}", redisson.empty() ? "C++" : redisson, berth % size_.processes);
}

// --- The report
// --------------------------------------------------------------------------------------------------------

// From the beginning of a turn to that of the next.
Micros Fleet::longestStandstill() const
{
    std::vector<Micros> began;
    for (const auto& turn : turns_) {
        began.push_back(turn.in);
    }
    std::ranges::sort(began);
    Micros longest{0};
    for (std::size_t i = 1; i < began.size(); ++i) {
        longest = std::max(longest, began[i] - began[i - 1]);
    }
    return longest;
}

// In a fair queue every waiter is served in turn, apart from the cost of dead waiters.
void Fleet::judgeWaits()
{
    for (const auto& turn : turns_) {
        if (mover_ && !berths_[turn.place].redisson.empty()) {
            continue; // lost messages, failed requests
        }
        const auto asked = turn.in - turn.waited;
        const auto deaths = std::ranges::count_if(
            killed_, [&](Micros when) { return when < turn.in && when + costOfADeath() > asked; });
        if (turn.waited > slack + deaths * costOfADeath()) {
            violate(turn.place, fmt::format("waited {} beside {} deaths", inSeconds(turn.waited), deaths));
        }
    }
}

// In a cluster lock() of Redisson 3 may return without a grant, and only some kinds' unlock() says so.
bool Fleet::mayHaveNoGrant(const Turn& turn) const
{
    return mover_ && berths_[turn.place].redisson.starts_with("3.") &&
           (kind_.name == "fairLock" || kind_.name == "writeLock" || kind_.name == "readWrite");
}

std::string Fleet::report()
{
    for (const auto& [other, turn] : overlaps(turns_, kind_.permits)) {
        const auto what = fmt::format("came in at {} while {} was inside, {} to {}", inSeconds(turn.in),
                                      nameOf(other.place), inSeconds(other.in), inSeconds(other.out));
        if (mayHaveNoGrant(turn) || mayHaveNoGrant(other)) {
            remarks_.push_back(nameOf(turn.place) + ' ' + what);
        } else {
            violate(turn.place, what);
        }
    }
    if (kind_.name == "fairLock") {
        if (queue_.standstills() == 0) {
            judgeWaits();
        } else {
            remarks_.push_back(fmt::format("stood still {} times, for which the order and the waits are not judged",
                                           queue_.standstills()));
        }
        remarks_.push_back(fmt::format("times of the queue: {} ahead at most", inSeconds(queue_.furthest())));
    }
    remarks_.insert(remarks_.begin(), fmt::format("without a turn: {} at most", inSeconds(longestStandstill())));
    std::string text;
    for (std::size_t i = 0; i < berths_.size(); i += size_.processes) {
        if (kind_.name == "readWrite") {
            text += row(i, true) + row(i, false);
        } else {
            text += row(i, std::nullopt);
        }
    }
    text += fmt::format("  records of requests: {} at most, {} allowed\n", records_, recordBound_);
    if (mover_) {
        text += fmt::format("  moves: {}, switch-overs: {}\n", mover_->moves(), mover_->switchOvers());
    }
    constexpr std::size_t most = 20;
    for (std::size_t i = 0; i < std::min(most, remarks_.size()); ++i) {
        text += "  " + remarks_[i] + '\n';
    }
    return text + (remarks_.size() > most ? fmt::format("  and {} more\n", remarks_.size() - most) : "");
}

// The row of the processes of a language and version, from the berth @p first on; if asked for, of their turns to read
// or to write.
std::string Fleet::row(std::size_t first, std::optional<bool> reads) const
{
    std::vector<Micros> waits;
    std::vector<std::size_t> turns(size_.processes);
    std::size_t all = 0;
    for (const auto& turn : turns_) {
        if (reads && turn.reads != *reads) {
            continue;
        }
        ++all;
        if (turn.place >= first && turn.place < first + size_.processes) {
            waits.push_back(turn.waited);
            ++turns[turn.place - first];
        }
    }
    std::ranges::sort(waits);
    const auto sumOf = [&](auto of) {
        std::size_t sum = 0;
        for (std::size_t i = first; i < first + size_.processes; ++i) {
            sum += of(i);
        }
        return sum;
    };
    const auto at = [](const auto& counts, std::size_t i) {
        const auto found = counts.find(i);
        return found == counts.end() ? 0 : found->second;
    };
    const auto& redisson = berths_[first].redisson;
    return fmt::format(
        tableRow, kind_.name + (reads ? *reads ? " to read" : " to write" : ""),
        redisson.empty() ? "C++" : redisson + (size_.isMixed ? "" : " alone"), size_.processes, waits.size(),
        fmt::format("{:.1f}",
                    100.0 * static_cast<double>(waits.size()) / static_cast<double>(std::max<std::size_t>(1, all))),
        fmt::format("{}-{}", std::ranges::min(turns), std::ranges::max(turns)),
        waits.empty() ? "-" : inSeconds(waits.back()), waits.empty() ? "-" : inSeconds(waits[waits.size() * 99 / 100]),
        waits.empty() ? "-" : inSeconds(waits[waits.size() / 2]),
        sumOf([&](std::size_t i) { return berths_[i].kills; }), sumOf([&](std::size_t i) { return at(losses_, i); }),
        sumOf([&](std::size_t i) { return at(violationsOf_, i); }));
}

std::string Fleet::heading()
{
    return fmt::format(tableRow, "kind", "who", "processes", "turns", "share %", "of a process", "longest wait", "99 %",
                       "median", "kills", "lost", "violations");
}

} // namespace redislock::test
