/// @file
/// What the answer to an unawaited release of a nested level means.
#pragma once

#include "core/machine/release_machine.hpp"

#include <cstdint>
#include <variant>

namespace redislock::detail {

/// What to do about a count that was sent to Redis.
enum class CountAnswer : std::uint8_t {
    done,  ///< Redis has it, or another count was sent since, or the client has ended
    again, ///< Redis may not have it: send it again, when the request's machine says so
    lost,  ///< Redis does not have the hold any more
};

/// @param told the count in the request. @param count the hold's count now. @param isValid whether the hold's time is
/// not over.
inline CountAnswer countAnswer(const ReleaseMachine::Event& event, std::uint32_t told, std::uint32_t count,
                               bool isValid)
{
    if (const auto* replied = std::get_if<Replied<UnlockAnswer>>(&event)) {
        return replied->answer.kind == UnlockAnswer::Kind::absent ? CountAnswer::lost : CountAnswer::done;
    }
    const auto* failed = std::get_if<Failed>(&event);
    if (failed != nullptr && failed->fault.error == Errc::wrongType) {
        return CountAnswer::lost; // another key took the name: our lock is gone
    }
    const bool mayHelp = failed != nullptr && !isFinal(failed->fault, Asker::background);
    return mayHelp && told == count && isValid ? CountAnswer::again : CountAnswer::done;
}

} // namespace redislock::detail
