/// @file
/// Requests that call a function at their end.
#pragma once

#include "link/request/call.hpp"

#include <functional>
#include <new>

namespace redislock::detail {

/// A call for which perhaps no thread waits.
class ListenedCall : public Call {
public:
    void finished() noexcept override
    {
        try {
            if (whenFinished) {
                whenFinished();
            }
        } catch (const std::bad_alloc&) { // the time of the call ends it
            return;
        }
    }

    std::function<void()> whenFinished; ///< called at the end if no thread waits
};

} // namespace redislock::detail
