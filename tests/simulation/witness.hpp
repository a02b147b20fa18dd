/// @file
/// An interface to watch the requests that a server executes.
#pragma once

#include "simulation/request.hpp"
#include "simulation/scheduler.hpp"
#include "wire/reply.hpp"

namespace redislock::simulation {

/// Sees each request before and after its execution, at the same virtual time.
class Witness {
public:
    Witness() = default;
    Witness(const Witness&) = delete;
    Witness& operator=(const Witness&) = delete;
    virtual ~Witness() = default;

    /// A copy of a request, which the network made, is about to be executed.
    virtual void copied(const Request& request) = 0;
    virtual void before(const Request& request, VirtualTime now) = 0;
    virtual void after(const Request& request, const detail::Reply& reply, VirtualTime now) = 0;
};

} // namespace redislock::simulation
