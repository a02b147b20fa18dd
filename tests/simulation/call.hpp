/// @file
/// A request and what became of it.
#pragma once

#include "redislock/clock.hpp"
#include "redislock/detail/logic/event.hpp"
#include "redislock/detail/logic/release_machine.hpp"
#include "redislock/detail/protocol/fault.hpp"
#include "simulation/faults.hpp"
#include "simulation/keyspace.hpp"
#include "simulation/request.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace redislock::simulation {

struct Hold;

/// As `detail::Call`: shared between who waits for it and the connection, which keeps it until its reply was read.
struct Call {
    enum class Mode : std::uint8_t { awaited, abandoned };

    Request request;
    std::chrono::milliseconds place{0}; ///< of a kind that keeps one: how long a waiter's place is kept
    std::string writer;                 ///< of a reader that writes: its write hold
    std::uint32_t count = 0;            ///< that the request sets, of acquires and releases
    Situation situation{};              ///< of the machine that asks
    Hold* hold = nullptr;               ///< whose call it is; null for questions

    TimePoint sentAt{};
    Reply reply;
    bool replied = false;
    detail::Fault fault;               ///< when not replied
    std::chrono::nanoseconds stood{0}; ///< how long the process was paused while a thread waited
    Mode mode = Mode::awaited;
    bool pending = false; ///< on a connection
    std::function<void(Call&)> finished;
    detail::ReleaseMachine release; ///< of an unawaited release of a nested level
};

/// What a finished call means to a machine. @tparam read makes the answer's event from the reply, or a failure.
template <class Event, class Read>
Event eventOf(const Call& call, TimePoint now, Read read)
{
    if (!call.replied) {
        return detail::Failed{now, call.fault, call.stood};
    }
    if (call.reply.isError()) {
        return detail::Failed{now, detail::classify(call.reply.text)};
    }
    return read(call.reply);
}

} // namespace redislock::simulation
