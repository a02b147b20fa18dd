/// @file
/// What an operation and whoever runs it tell each other.
#pragma once

#include "core/order.hpp"
#include "core/port.hpp"
#include "link/request/call.hpp"
#include "link/request/event.hpp"
#include "redislock/clock.hpp"
#include "redislock/random.hpp"
#include "redislock/retry_policy.hpp"

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <variant>

namespace redislock::detail {

class BackgroundRun;
class Core;

/// What to do next for an operation.
struct WaitStep {
    enum class Kind : std::uint8_t {
        awaitAnswer, ///< wait for the end of the request, at most until `until`: then answered()
        sleep,       ///< wait until told to look, at most until `until`: then look()
        askPolicy,   ///< ask the policy of `order`, under no mutex: then paused()
        done,        ///< the operation says how it ended
    };
    Kind kind = Kind::done;
    TimePoint until{};
    std::uint32_t refusals = 0;          ///< for askPolicy: how many refusals there were
    const AcquireOrder* order = nullptr; ///< for askPolicy
    bool follows = false; ///< for awaitAnswer: the thread of the request behind this one may read both answers
};

/// Says who is told of the end of a request: a thread that waits on it, or (@p run) nobody but a run.
void setRequester(Call& call, BackgroundRun* run);

/// Makes an operation look again. @param call its request. @param run null: a thread waits for the end
void wakeOperation(Port& port, Call& call, BackgroundRun* run) noexcept;

/// What a policy says, as an event, still without its time, for the machine that asks; an exception of the policy ends
/// the call. Expects no mutex to be held. @param thrown receives that exception; null: it is dropped.
std::variant<Pause, Cancelled> pauseOf(const RetryPolicy& policy, std::uint32_t attempt, Random& random,
                                       std::exception_ptr* thrown);

/// Something that a client does with one request at a time, step by step. There are two ways to run it: a thread that
/// waits for the end (ThreadRun), or nobody waits (BackgroundRun). All functions expect the core's mutex. Requests that
/// a step queues are written when the mutex is free.
class Operation {
public:
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;
    virtual ~Operation() = default;

    /// Something changed, or the time has come; the first step too.
    virtual WaitStep look() = 0;
    /// The request has ended.
    virtual WaitStep answered(const Outcome& outcome) = 0;
    /// The policy has answered.
    virtual WaitStep paused(const std::variant<Pause, Cancelled>& /*answer*/) { return {}; }
    /// Ends the operation at once.
    virtual WaitStep cancel() = 0;

    /// The request under way, or the last one. A thread sleeps on its signal.
    [[nodiscard]] virtual Call& call() const noexcept = 0;
    /// Stops waiting for the answer to the request under way. @return how the request ends for its caller
    Fault giveUp();

protected:
    /// @param run null: a thread waits for the end
    Operation(Core& core, BackgroundRun* run) noexcept
        : Operation(core, run, run == nullptr ? Lane::commands : Lane::background)
    {
    }
    Operation(Core& core, BackgroundRun* run, Lane lane) noexcept : core_(core), run_(run), lane_(lane) {}

    /// Queues a request, and perhaps another right behind it. @return false after the client's end: then, if a thread
    /// waits, the outcome says so
    bool submit(std::shared_ptr<Call> request, std::shared_ptr<Call> behind = nullptr);
    /// Takes back the request under way, or drops its answer. @return whether it was taken back
    bool takesBack();
    /// The same, of an operation that nobody waits for and that has to end: the client's end does not wait for a
    /// connection. A request that was sent is left to be answered.
    bool takesBackUnsent(const std::optional<Errc>& ended);
    static WaitStep awaitAnswer(TimePoint until) noexcept { return {WaitStep::Kind::awaitAnswer, until}; }
    static WaitStep sleep(TimePoint until) noexcept { return {WaitStep::Kind::sleep, until}; }

    Core& core_;
    BackgroundRun* const run_;
    const Lane lane_;
};

} // namespace redislock::detail
