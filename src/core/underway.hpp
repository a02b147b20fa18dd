/// @file
/// What the end of a client waits for.
#pragma once

#include "core/core.hpp"

#include <utility>

namespace redislock::detail {

/// Something is under way for whose end the client's shutdown waits, within its time: what it may leave in Redis is
/// still to be taken back.
class Underway {
public:
    explicit Underway(Core& core) noexcept : core_(&core) { core.begins(); }
    Underway(Underway&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
    Underway& operator=(Underway&&) = delete;
    /// Expects the mutex to be free.
    ~Underway()
    {
        if (core_ != nullptr) {
            const Inside lock(core_->port);
            core_->ends();
        }
    }

private:
    Core* core_;
};

} // namespace redislock::detail
