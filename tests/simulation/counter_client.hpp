/// @file
/// What a simulated process knows of semaphores and latches.
#pragma once

#include "redislock/config.hpp"
#include "redislock/detail/logic/acquire_machine.hpp"
#include "redislock/detail/logic/query_machine.hpp"
#include "redislock/detail/logic/waiter_queue.hpp"
#include "simulation/request.hpp"
#include "simulation/sim_connection.hpp"
#include "simulation/sim_subscriber.hpp"

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::simulation {

/// As `detail::CounterWaiter`: a thread that waits.
struct CounterWaiter : detail::WaiterLink<CounterWaiter> {
    void wake()
    {
        notified = hinted = true;
        look();
    }

    std::int64_t permits = 0; ///< of a message's number that it needs; 0: any message concerns it
    std::uint64_t number = 0; ///< tells it from all others of its client
    bool notified = false;
    bool hinted = false;
    std::optional<Errc> ended{};
    std::function<void()> look;
};

class CounterClient;

/// As `detail::NamedCounter`.
struct Counter : std::enable_shared_from_this<Counter> {
    enum class Kind : std::uint8_t { semaphore, permitExpirableSemaphore, countDownLatch };

    Kind kind{};
    std::string name;
    std::string channel;
    CounterClient* client = nullptr;

    detail::WaiterQueue<CounterWaiter> waiters{};
    std::vector<std::string> settled{}; ///< records of answers that have arrived
    bool subscribed = false;
    bool confirmed = false;
};

/// A request about a counter.
struct CounterScript {
    const detail::Script* script = nullptr;
    std::vector<std::string> otherKeys{};
    std::vector<std::string> arguments{};
};

/// What the threads of one simulated process share: the functions of `detail::NamedCounter`, under the same names, with
/// one critical section there as one event here.
class CounterClient {
public:
    CounterClient(Network& network, std::shared_ptr<Host> host, const Config& config, std::uint64_t seed);
    CounterClient(const CounterClient&) = delete;
    CounterClient& operator=(const CounterClient&) = delete;

    [[nodiscard]] Host& host() noexcept { return *host_; }
    [[nodiscard]] const Config& config() const noexcept { return config_; }
    [[nodiscard]] Random& random() noexcept { return random_; }
    [[nodiscard]] SimConnection& commands() noexcept { return commands_; }
    Counter& counter(Counter::Kind kind, const std::string& name);
    [[nodiscard]] const std::vector<std::shared_ptr<Counter>>& counters() const noexcept { return counters_; }

    [[nodiscard]] std::string newRecord(const Counter& counter);
    [[nodiscard]] std::string newPermitId();
    [[nodiscard]] std::string recordTime() const;
    /// The record, and records that are of no use any more, for the script to delete.
    [[nodiscard]] std::vector<std::string> keysWith(Counter& counter, const std::string& record);
    static void settle(Counter& counter, const std::string& record);
    std::shared_ptr<RequestCall> call(const Counter& counter, const CounterScript& script, Situation situation);
    /// Asks in the background until answered. @param limit when to end in any case.
    void askUnawaited(const Counter& counter, const CounterScript& script, TimePoint limit = TimePoint::max());
    /// Goes on with what was first asked then.
    void repeatUnawaited(const Counter& counter, const CounterScript& script, TimePoint begin);

    void join(Counter& counter, CounterWaiter& waiter);
    void leave(Counter& counter, CounterWaiter& waiter);
    void subscribe(Counter& counter);
    static void refused(Counter& counter, CounterWaiter& waiter);

    /// Called when a request that nobody waits for was repeated in vain for a minute.
    std::function<void()> gaveUp;

    /// The states of what no thread waits for.
    void forEachSituation(const std::function<void(Situation)>& tell) const;
    /// Whether anything is left that belongs to no thread.
    [[nodiscard]] std::string residue() const;

private:
    struct Unawaited {
        detail::QueryMachine machine;
        std::shared_ptr<RequestCall> call;
    };

    void hear(Counter& counter, detail::Notice notice, std::string_view text);
    [[nodiscard]] static detail::ChannelListener listenerOf(const std::shared_ptr<Counter>& counter);
    static void wakeFor(Counter& counter, std::int64_t permits);
    void step(std::list<Unawaited>::iterator query, const detail::QueryMachine::Event& event);

    std::shared_ptr<Host> host_;
    const Config config_;
    Random random_;
    std::uint64_t lastRecord_ = 0;
    std::uint64_t lastPermit_ = 0;
    std::uint64_t lastWaiter_ = 0;
    std::vector<std::shared_ptr<Counter>> counters_;
    std::list<Unawaited> unawaited_;
    std::uint64_t lastRequest_ = 0;
    SimConnection commands_;
    SimConnection background_;
    SimSubscriber subscriber_;
};

} // namespace redislock::simulation
