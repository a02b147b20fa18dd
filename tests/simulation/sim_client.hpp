/// @file
/// A client: the library's own core, in a world of virtual time.
#pragma once

#include "core/core.hpp"
#include "core/counter/counter.hpp"
#include "core/port.hpp"
#include "link/request/call.hpp"
#include "link/request/calls.hpp"
#include "redislock/config.hpp"
#include "redislock/observer.hpp"
#include "simulation/carrier.hpp"
#include "simulation/host.hpp"
#include "simulation/loss_checker.hpp"
#include "simulation/safety_checker.hpp"
#include "simulation/sim_thread.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

namespace redislock::simulation {

using detail::Hold;
using detail::HoldRef;
using detail::NamedLock;
using detail::Waiter;

/// A lock of a run, or one half of a read/write lock.
struct View {
    std::string name;
    detail::LockKind kind;
};

/// The common part of the threads of one simulated process. It plays the part of `detail::Engine` around the core,
/// with one event for each critical section. After each event the checker learns the client's beliefs.
class SimClient final : public detail::Port, private Observer, public std::enable_shared_from_this<SimClient> {
public:
    struct World { ///< the surroundings of the client
        Scheduler& scheduler;
        Network& network;
        SafetyChecker& checker;
        Trace& trace;
        /// Learns of each level that a caller is told to have.
        std::function<void(const Hold&, const std::string& holder, const Durability&)> told{};
    };
    /// A process that is gone believes nothing.
    struct End {
        void operator()(SimClient* client) const;
    };
    using Owner = std::unique_ptr<SimClient, End>;

    static Owner make(const World& world, std::shared_ptr<Host> host, const Config& config,
                      const std::vector<View>& views, std::uint64_t seed);

    [[nodiscard]] detail::Core& core() noexcept { return core_; }
    [[nodiscard]] Host& host() noexcept { return *host_; }
    [[nodiscard]] const Config& config() const noexcept { return config_; }
    [[nodiscard]] NamedLock& named(std::size_t index) noexcept { return *names_[index]; }
    std::shared_ptr<detail::NamedCounter> counter(detail::CounterKind kind, const std::string& name);
    [[nodiscard]] SafetyChecker& checker() noexcept { return world_.checker; }
    [[nodiscard]] Trace& trace() noexcept { return world_.trace; }
    [[nodiscard]] VirtualTime trueTime() const noexcept { return world_.scheduler.now(); }
    [[nodiscard]] std::string holderOf(const Hold& hold) const { return core_.holderText(hold); }

    /// To be called at the end of each event of the core.
    void observe();
    /// A thread sleeps on that call, until wakesNoMore().
    void sleeps(detail::Call& call, ThreadCall& thread) { sleepers_.push_back({&call, &thread}); }
    void wakesNoMore(const detail::Call& call)
    {
        std::erase_if(sleepers_, [&](const Sleeper& each) { return each.call == &call; });
    }
    /// Ends the client in order, as `detail::Engine::shutdown()` does, which waits until nothing is under way.
    /// @return the holders for which Redis may keep a lock: they held it until then, or lost it.
    std::vector<std::string> close();

    /// A level was granted: expects Redis to have it. @param asked with what durability
    void expectGranted(const detail::Acquired& acquired, const Durability& asked);

    /// Calls @p tell with the states of the machines that no thread drives.
    void forEachSituation(const std::function<void(Situation, const std::string& name)>& tell) const;
    /// Whether replicas are being asked for a grant.
    [[nodiscard]] bool isConfirming() const noexcept { return !confirming_.link().queue().empty(); }
    /// Whether an acquire pauses after a grant that was not durable. Only where no acquire has a policy.
    [[nodiscard]] bool pausesNotDurable() const;
    /// The moment of the last trouble with the server, as far as the world knows.
    VirtualTime lastTrouble{0};
    /// Whether a request that no thread waits for was repeated in vain until its time was over, or came too late to be
    /// sent.
    [[nodiscard]] bool gaveUp();
    void giveUp() noexcept { gaveUp_ = true; }
    /// Things that are left though they belong to no hold and no thread; empty: none.
    [[nodiscard]] std::string residue() const;

    // detail::Port
    void enter() noexcept override {}
    void exit() noexcept override;
    [[nodiscard]] TimePoint now() const noexcept override { return host_->now(); }
    [[nodiscard]] bool isForked() const noexcept override { return false; }
    HolderId nextHolder() noexcept override { return HolderId{++lastHolder_}; }
    std::uint64_t nextRequest() noexcept override { return ++lastRecord_; }
    bool submit(detail::Lane lane, std::shared_ptr<detail::Call> call,
                std::shared_ptr<detail::Call> behind = nullptr) override;
    void submitIfConnected(std::vector<std::shared_ptr<detail::Call>> calls) override;
    bool withdraw(detail::Call& call) override { return self_ != nullptr && background_.link().withdraw(call); }
    detail::Fault giveUp(detail::Lane lane, detail::Call& call) noexcept override
    {
        return self_ == nullptr ? detail::Fault{} : connection(lane).link().giveUp(call);
    }
    void fail(const std::shared_ptr<detail::Call>& call, Errc why) override;
    void want(std::string channel, detail::ChannelListener listener) override;
    void drop(std::string channel, detail::ChannelListener listener) override;
    void wake(detail::Call& call) noexcept override;
    void alarm(TimePoint when) noexcept override;
    void after(TimePoint when, std::function<void()> what) override;
    void post(std::function<void()> what) override;
    void tell(std::function<void(Observer&)> what) override;

private:
    /// A thread that sleeps on the signal of a call.
    struct Sleeper {
        detail::Call* call;
        ThreadCall* thread;
    };
    /// The client's belief in a hold.
    struct Belief {
        std::string name;
        TimePoint until;
    };
    struct Release {
        std::weak_ptr<detail::HoldCall> call; ///< perhaps of another operation by now
        std::string name;
    };
    /// A hold was passed on, after a number of requests.
    struct LockPassed {
        std::string name;
        std::string holder;
        std::uint64_t requests;
    };
    /// How a hold was lost.
    struct Loss {
        RunOut end;
        std::stop_token told; ///< must be stopped soon
        bool isEarly;         ///< before its time was over
        bool isRenewed;       ///< it was being renewed
    };

    SimClient(const World& world, std::shared_ptr<Host> host, const Config& config, std::string id, std::uint64_t seed);
    ~SimClient() = default;

    void lost(const LockEvent& event, LossReason reason) noexcept override;
    void released(const LockEvent& event, Unlocked how, std::chrono::nanoseconds held) noexcept override;
    void judge(const Loss& loss);
    void note(const std::shared_ptr<detail::Call>& call);
    void judgeUnawaited();
    RequestCarrier& connection(detail::Lane lane) noexcept
    {
        return lane == detail::Lane::commands     ? commands_
               : lane == detail::Lane::background ? background_
                                                  : confirming_;
    }
    Carrier::Way way(Purpose purpose, TimePoint::duration connectTimeout);
    void wakeAnswered();

    World world_;
    std::shared_ptr<Host> host_;
    const Config config_;
    std::uint64_t lastHolder_ = 0;
    std::uint64_t lastRequest_ = 0;
    std::uint64_t lastRecord_ = 0;
    std::uint64_t alarms_ = 0;
    bool observesSoon_ = false;
    RequestCarrier commands_;
    RequestCarrier background_;
    RequestCarrier confirming_;
    ListeningCarrier subscriber_;
    detail::Core core_;
    std::vector<Sleeper> sleepers_;
    std::map<std::string, Belief> beliefs_;        ///< by holder
    std::map<std::string, std::uint64_t> tokens_;  ///< by holder: the first that it got
    std::set<std::string> renewed_;                ///< holders with a level that was granted and is renewed
    std::map<std::string, std::stop_token> stops_; ///< of some of the beliefs
    std::vector<std::string> renewals_;            ///< begun, not judged yet
    std::vector<Loss> losses_;                     ///< not judged yet
    std::vector<LockPassed> passed_;               ///< likewise
    std::vector<std::string> lost_;                ///< all holders that lost their locks
    std::vector<Release> releases_;                ///< that no thread waits for
    std::vector<std::shared_ptr<detail::ScriptCall>> unawaited_; ///< likewise; over when the caller has dropped them
    bool gaveUp_ = false;
    std::vector<std::shared_ptr<NamedLock>> names_, ended_;
    std::vector<std::shared_ptr<detail::NamedCounter>> counters_;
    std::shared_ptr<SimClient> self_; ///< until its end
};

} // namespace redislock::simulation
