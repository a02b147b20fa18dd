/// @file
/// Requests whose end is told by a function.
#pragma once

#include "logic/call/call.hpp"

#include <functional>

namespace redislock::detail {

/// A call that may have no thread that waits for it.
class ListenedCall : public Call {
public:
    void finished() noexcept override
    {
        if (whenFinished) {
            whenFinished();
        }
    }

    std::function<void()> whenFinished; ///< of a call that no thread waits for
};

} // namespace redislock::detail
