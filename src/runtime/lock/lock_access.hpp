/// @file
/// The inside of a lock, for those who are made of locks.
#pragma once

#include "redislock/lock.hpp"
#include "runtime/engine/engine.hpp"

namespace redislock::detail {

struct LockAccess {
    static NamedLock& named(const Lock& lock) noexcept { return *lock.state_; }
    static Engine& engine(const Lock& lock) noexcept { return engineOf(*lock.state_); }
};

} // namespace redislock::detail
