#include "simulation/queue_checker.hpp"

#include "simulation/safety_checker.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace redislock::simulation {

using detail::KindTraits;

void QueueChecker::executed(const Request& request, const Reply& reply, bool hadIt, const std::string& passedTo,
                            std::int64_t nowMs)
{
    if (request.kind == nullptr || request.kind->asking != detail::Asking::queue || reply.isError()) {
        return;
    }
    Queue& queue = queues_[request.name];
    for (Place& place : queue) {
        place.isOver = place.isOver || nowMs >= place.keptUntilMs;
    }
    note(request, reply, hadIt, queue, nowMs);
    if (!passedTo.empty()) {
        granted(request.name, passedTo, queue);
    }
}

/// Notes what the request means for its own holder.
void QueueChecker::note(const Request& request, const Reply& reply, bool hadIt, Queue& queue, std::int64_t nowMs)
{
    if (request.does(&KindTraits::unlock) && request.arguments.at(1) == "0") {
        std::erase_if(queue, [&](const Place& place) { return place.holder == request.arguments[0]; });
    } else if (!request.does(&KindTraits::lock) || hadIt) {
        return;
    } else if (reply.kind == Reply::Kind::nil) {
        granted(request.name, request.arguments[0], queue);
    } else if (detail::LockAnswer::refusal(reply)) {
        asked(request, queue, nowMs);
    }
}

/// The granted waiter leaves the queue.
void QueueChecker::granted(const std::string& name, const std::string& holder, Queue& queue)
{
    const auto first = std::find_if(queue.begin(), queue.end(),
                                    [&](const Place& place) { return !place.isOver || place.holder == holder; });
    if (first != queue.end() && first->holder != holder) {
        throw Violation("T6 order of asking",
                        fmt::format("{} got {} before {}, who asked first", holder, name, first->holder));
    }
    std::erase_if(queue, [&](const Place& place) { return place.holder == holder; });
}

void QueueChecker::asked(const Request& request, Queue& queue, std::int64_t nowMs)
{
    const std::int64_t place = std::stoll(request.arguments.at(3));
    const std::string& holder = request.arguments[0];
    const auto own = std::find_if(queue.begin(), queue.end(), [&](const Place& p) { return p.holder == holder; });
    if (own != queue.end()) {
        own->keptUntilMs = std::max(own->keptUntilMs, nowMs + place);
    } else if (place > 0) {
        queue.push_back({holder, nowMs + place});
    }
}

} // namespace redislock::simulation
