/// @file
/// Calls on a connection of their own.
#pragma once

#include "link/link.hpp"
#include "link/loop_link.hpp"
#include "link/request/call.hpp"

#include <chrono>
#include <cstdint>
#include <memory>

namespace redislock::detail {

/// Detached calls, pipelined on a connection of the client's thread.
///
/// **Thread safety**: none; everything on the io_context's thread, finished() of the calls too.
class CallLink : public LoopLink {
public:
    /// @param limits of a reply
    CallLink(boost::asio::io_context& io, Connector& connector, std::chrono::milliseconds timeout, std::uint64_t seed,
             Report report, Demoted demoted = nullptr, bool isInCluster = false, ReplyLimits limits = {})
        : LoopLink(io, connector, link_, timeout, std::move(report), std::move(demoted), limits),
          link_(timeout, seed, isInCluster)
    {
    }

    /// Another node may have what was asked for here: see Link::handOn(). @param leaves ends the connection too
    void handOn(const Link::IsElsewhere& isElsewhere, bool leaves)
    {
        {
            FinishedCalls finished;
            link_.handOn(isElsewhere, finished);
        }
        if (leaves) {
            cut();
        }
    }
    /// When the oldest request was written that has no answer; max(): there is none.
    [[nodiscard]] TimePoint owesSince() const noexcept
    {
        return link_.isOpen() ? link_.queue().oldestSent() : TimePoint::max();
    }

    /// Queues a call, and perhaps another right behind it. Follow with work().
    void enqueue(const std::shared_ptr<Call>& call, const std::shared_ptr<Call>& behind = nullptr)
    {
        FinishedCalls finished;
        if (link_.enqueue(call, behind, BootClock::now(), finished)) {
            return;
        }
        for (const auto* each : {&call, &behind}) {
            if (*each != nullptr) {
                (*each)->pending = false;
                finished.add(*each);
            }
        }
    }

protected:
    Link link_;
};

} // namespace redislock::detail
