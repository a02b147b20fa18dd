/// @file
/// What the answer to an unawaited end of a nested level means.
#pragma once

#include "redislock/detail/logic/release_machine.hpp"

#include <cstdint>
#include <variant>

namespace redislock::detail {

/// What to do about a count that Redis was told.
enum class CountAnswer : std::uint8_t {
    done,  ///< Redis has it, or another count was told since, or the client has ended
    again, ///< perhaps Redis does not have it: as the machine of its request says
    lost,  ///< Redis does not have the hold any more
};

/// @param told the count of the request. @param count the hold's own now. @param isValid whether the hold's time is not
/// over.
inline CountAnswer countAnswer(const ReleaseMachine::Event& event, std::uint32_t told, std::uint32_t count,
                               bool isValid)
{
    if (const auto* replied = std::get_if<Replied<UnlockAnswer>>(&event)) {
        return replied->answer.kind == UnlockAnswer::Kind::absent ? CountAnswer::lost : CountAnswer::done;
    }
    const auto* failed = std::get_if<Failed>(&event);
    if (failed != nullptr && failed->fault.error == Errc::wrongType) {
        return CountAnswer::lost; // another key took the name: ours is gone
    }
    const bool mayHelp = failed != nullptr && !isFinal(failed->fault, Asker::background);
    return mayHelp && told == count && isValid ? CountAnswer::again : CountAnswer::done;
}

} // namespace redislock::detail
