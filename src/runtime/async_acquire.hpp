/// @file
/// An acquire that no thread waits for.
#pragma once

#include "runtime/attempt.hpp"
#include "runtime/completion.hpp"
#include "runtime/engine.hpp"

#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <memory>
#include <optional>

namespace redislock::detail {

/// Drives an AcquireMachine on the background thread, as Engine::drive() does on a calling one: what is a sleep there is a
/// stage here, which a timer, look() or the answer ends.
///
/// Members are guarded by the engine's mutex; only look() is called by other threads.
class Engine::AsyncAcquire final : public AsyncWaiter, public std::enable_shared_from_this<AsyncAcquire> {
public:
    AsyncAcquire(Engine& engine, std::shared_ptr<NamedLock> named, AcquireOrder order,
                 Completion<LockGuard> completion);
    ~AsyncAcquire() override;

    /// Listens to the handler's cancellation slot. Before begin(), on the thread that starts the operation.
    void cancelWhenToldTo();
    /// Instead of begin().
    Completion<LockGuard> takeCompletion() { return std::move(completion_); }
    void begin();
    void cancel();
    void look() noexcept override;
    void answered(HoldCall& call) override;

private:
    enum class Stage : std::uint8_t {
        awaitingTurn,   ///< others of this client are before it
        asking,         ///< a request is under way
        behindReleases, ///< refused perhaps only because of a hold of this client that is being released
        choosing,       ///< its policy is asked for a pause
        sleeping,       ///< until told, or `until_`
        done,
    };
    using Event = AcquireMachine::Event;

    void judge();
    void judgeTurn();
    void judgeAsking();
    void judgeSleep();
    void judgeReleases();
    void step(const Event& event);
    void send();
    bool withdraw();
    void timeOver();
    void wakeAt(TimePoint when);
    void finish(const AcquireResult& result);
    void watchReleases(bool watches) noexcept;
    void askPolicy(std::uint32_t refusals);

    Engine& engine_;
    std::shared_ptr<NamedLock> named_;
    const AcquireOrder order_;
    Completion<LockGuard> completion_;
    boost::asio::steady_timer timer_;

    HoldRef hold_;
    std::optional<Attempt> attempt_;
    std::optional<AcquireMachine> machine_;
    Stage stage_ = Stage::awaitingTurn;
    TimePoint until_{};
    std::optional<Event> refusal_; ///< of the request that is repeated behind releases
    bool watchesReleases_ = false;
    bool cancelled_ = false;
    bool looking_ = false;
};

} // namespace redislock::detail
