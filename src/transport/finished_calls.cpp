#include "transport/finished_calls.hpp"

#include <algorithm>

namespace redislock::detail {

void FinishedCalls::makeRoom()
{
    const auto one = [](auto& list) {
        if (list.size() == list.capacity()) {
            list.reserve(std::max<std::size_t>(8, 2 * list.size()));
        }
    };
    one(detached);
    one(others);
    one(sleepers);
}

void FinishedCalls::tell() noexcept
{
    for (const void* sleeper : sleepers) {
        Signal::wake(sleeper);
    }
    sleepers.clear();
    for (auto& call : detached) {
        call->finished();
    }
    detached.clear();
    others.clear();
}

} // namespace redislock::detail
