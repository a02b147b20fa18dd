/// @file
/// What a thread of a program does in the library.
#pragma once

#include "redislock/detail/logic/query_machine.hpp"
#include "redislock/retry_policy.hpp"
#include "simulation/awaiting.hpp"
#include "simulation/sim_client.hpp"

#include <optional>
#include <string>

namespace redislock::simulation {

/// A call of a thread that is about locks.
class Operation : public Awaiting {
public:
    explicit Operation(SimClient& client) noexcept : Awaiting(client.host(), client.commands()), client_(client) {}

protected:
    SimClient& client_;
};

/// What a finished acquire means to its machine.
detail::AcquireMachine::Event lockEvent(const Call& call, TimePoint now);

/// How an acquire ended.
struct AcquireEnd {
    detail::AcquireResult::Kind kind = detail::AcquireResult::Kind::failed;
    Errc error{};
    std::shared_ptr<Hold> hold; ///< null: not acquired
    std::uint32_t level = 0;
};

/// An acquire of an outermost hold.
class OutermostAcquire final : public Operation {
public:
    static constexpr int placesKept = 5; ///< as of Engine::Attempt

    /// @param retry null: as it is told. @param writer the thread's hold of the other half; null: none.
    OutermostAcquire(SimClient& client, NamedLock& named, std::uint64_t owner, Wait wait, Lease lease,
                     detail::EndedBy endedBy, std::shared_ptr<const RetryPolicy> retry = nullptr,
                     const Hold* writer = nullptr);
    ~OutermostAcquire() override;

    void advance() override;
    [[nodiscard]] std::optional<Situation> situation() const override;
    [[nodiscard]] const AcquireEnd& end() const noexcept { return end_; }

private:
    enum class Place { firstTurn, turn, asking, releases, sleeping, over };
    enum class Turn { mine, over };

    std::optional<Turn> lookForTurn();
    void park(TimePoint until);
    bool begin();
    bool step();
    bool takeTurn();
    void ask();
    bool readAnswer();
    [[nodiscard]] bool wasContended() const;
    [[nodiscard]] detail::AcquireResult withoutTurn(detail::AcquireResult result) const;
    bool awaitReleases();
    void watchReleases(bool watches);
    bool sleep();
    void conclude(const detail::AcquireResult& result);
    void leave();

    NamedLock& named_;
    Wait wait_;
    bool behindHold_ = false;
    Lease lease_;
    std::shared_ptr<const RetryPolicy> retry_;
    bool asksForItself_;
    TimePoint deadline_;
    Waiter waiter_;
    std::uint32_t level_ = 0;
    std::optional<detail::AcquireMachine> machine_;
    detail::AcquireMachine::Event event_;
    Place place_ = Place::firstTurn;
    TimePoint askUntil_{};
    TimePoint sleepUntil_{};
    bool watchesReleases_ = false;
    bool left_ = false;
    AcquireEnd end_;
};

/// An acquire of a nested level.
class NestedAcquire final : public Operation {
public:
    NestedAcquire(SimClient& client, Hold& hold, Wait wait, Lease lease, detail::EndedBy endedBy);

    void advance() override;
    [[nodiscard]] std::optional<Situation> situation() const override;
    [[nodiscard]] const AcquireEnd& end() const noexcept { return end_; }

private:
    void conclude(const detail::AcquireResult& result);

    std::shared_ptr<Hold> hold_;
    detail::EndedBy endedBy_;
    std::uint32_t level_;
    std::shared_ptr<Call> command_;
    std::chrono::milliseconds lease_;
    detail::AcquireMachine machine_;
    std::optional<detail::AcquireMachine::Event> event_;
    TimePoint sleepUntil_{};
    AcquireEnd end_;
};

/// The end of a level of a valid hold, waited for.
class AwaitedRelease final : public Operation {
public:
    AwaitedRelease(SimClient& client, Hold& hold, std::uint32_t level);

    void advance() override;
    [[nodiscard]] std::optional<Situation> situation() const override;
    [[nodiscard]] Unlocked how() const noexcept { return how_; }

private:
    void conclude(Unlocked how);

    std::shared_ptr<Hold> hold_;
    TimePoint validUntil_;
    bool nested_ = false;
    std::shared_ptr<Call> command_;
    std::shared_ptr<Call> behind_;
    detail::ReleaseMachine machine_;
    std::optional<detail::ReleaseMachine::Event> event_;
    TimePoint sleepUntil_{};
    Unlocked how_{};
};

/// A question about a name, or its release by force.
class Question final : public Operation {
public:
    Question(SimClient& client, NamedLock& named, detail::ScriptUse detail::KindTraits::*use,
             std::vector<std::string> arguments = {});

    void advance() override;
    [[nodiscard]] std::optional<Situation> situation() const override;
    [[nodiscard]] std::optional<Errc> error() const noexcept { return error_; }
    [[nodiscard]] const Reply& reply() const noexcept { return command_->reply; }

private:
    std::shared_ptr<Call> command_;
    detail::QueryMachine machine_;
    std::optional<detail::QueryMachine::Event> event_;
    TimePoint sleepUntil_{};
    std::optional<Errc> error_;
};

} // namespace redislock::simulation
