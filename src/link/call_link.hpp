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
    CallLink(boost::asio::io_context& io, Connector& connector, std::chrono::milliseconds timeout, std::uint64_t seed,
             Report report, Demoted demoted = nullptr)
        : LoopLink(io, connector, link_, timeout, std::move(report), std::move(demoted)), link_(timeout, seed)
    {
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
