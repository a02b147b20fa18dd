/// @file
/// A slow network between a client and the server, which on one machine are connected almost without delay.
#pragma once

#include "rows.hpp"

#include <chrono>
#include <memory>

namespace redislock::bench {

/// A relay in front of a server that forwards every byte after a fixed time, in each direction; order and pace stay the
/// same, nothing is lost. The relay has a thread of its own.
class SlowLink {
public:
    /// @param delay each way
    SlowLink(const Target& server, std::chrono::microseconds delay);
    SlowLink(const SlowLink&) = delete;
    SlowLink& operator=(const SlowLink&) = delete;
    /// Closes all connections.
    ~SlowLink();

    /// The server as it is seen through the link.
    [[nodiscard]] const Target& target() const noexcept { return target_; }

private:
    class Relay;

    std::unique_ptr<Relay> relay_;
    Target target_;
};

} // namespace redislock::bench
