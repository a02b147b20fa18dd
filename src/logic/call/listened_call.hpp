/// @file
/// Requests that call a function at their end.
#pragma once

#include "logic/call/call.hpp"

#include <functional>

namespace redislock::detail {

/// A call for which perhaps no thread waits.
class ListenedCall : public Call {
public:
    void finished() noexcept override
    {
        if (whenFinished) {
            whenFinished();
        }
    }

    std::function<void()> whenFinished; ///< called at the end if no thread waits
};

} // namespace redislock::detail
