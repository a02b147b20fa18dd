/// @file
/// An acquire of a group under way.
#pragma once

#include "client/group/group_hold.hpp"
#include "client/group/server_id.hpp"
#include "core/group/group_flow.hpp"
#include "link/request/signal.hpp"
#include "redislock/lease_time.hpp"
#include "redislock/random.hpp"
#include "redislock/retry_policy.hpp"

#include <boost/system/error_code.hpp>

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <system_error>

namespace redislock::detail {

/// Drives a GroupFlow: the answers come on the background threads of the members' clients; time is watched by the
/// waiting thread, or by timers on a background thread.
class GroupAcquire final : public std::enable_shared_from_this<GroupAcquire>, private GroupRounds {
public:
    struct Order {
        Wait wait;
        Lease lease;
        std::shared_ptr<const RetryPolicy> retry; ///< says when to try again; null: when a member is free
        std::exception_ptr* thrown = nullptr;     ///< receives what the policy throws; null: that is dropped
        std::stop_token stop{};                   ///< calls off run()
    };
    using End = std::function<void(boost::system::error_code, std::shared_ptr<GroupHold>)>;

    GroupAcquire(std::shared_ptr<const GroupMembers> members, Order order);

    /// Blocks until the acquire is over, or called off. @param hold null: not acquired.
    std::error_code run(std::shared_ptr<GroupHold>& hold);
    /// Begins without waiting. @param end called once, on any thread, perhaps in here.
    void start(End end);
    /// Ends the acquire, if it is not over.
    void cancel();

private:
    void identifyServers();
    void startFlow();
    void step(const GroupMachine::Event& event);
    void handle(const GroupMachine::Event& event);
    void follow(const WaitStep& next);
    void awaitPolicy(std::uint32_t round);
    void askPolicy(std::uint32_t round);
    void end(std::error_code error);
    void wakeAt(TimePoint when);
    std::function<void()> doAt(TimePoint when, const std::function<void()>& what);
    void callOff();
    std::optional<Reason> begin() override;
    void ask(std::uint32_t round, std::size_t member, Wait wait) override;
    void giveUp() override;
    std::optional<Reason> keep() override;
    [[nodiscard]] bool anyState(ServerId::State state) const;

    const std::shared_ptr<const GroupMembers> members_;
    const Order order_;
    const TimePoint began_ = BootClock::now();

    std::mutex mutex_;
    Signal changed_; ///< wakes the waiting thread
    std::deque<GroupMachine::Event> events_;
    bool busy_ = false; ///< a thread handles events
    bool over_ = false;
    std::error_code error_;              ///< of the acquire that is over
    std::uint32_t toAsk_ = 0;            ///< the round after which the waiting thread asks the policy
    TimePoint until_ = TimePoint::max(); ///< when TimerFired is due; without a waiting thread: by a timer

    // for the thread that handles events
    GroupFlow flow_;
    Random random_;                   ///< for the policy
    std::shared_ptr<GroupHold> hold_; ///< of the current round
    bool cancelled_ = false;
    End end_;                            ///< null: a thread waits
    std::shared_ptr<GroupAcquire> self_; ///< keeps this until the end, if no thread waits
    std::function<void()> callOffTimer_;
};

/// Whether two members of a group that needs distinct servers are known to be on one server. Asks no server.
[[nodiscard]] bool haveOneServerTwice(const GroupMembers& members);

} // namespace redislock::detail
