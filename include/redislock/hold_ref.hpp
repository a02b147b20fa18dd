/// @file
/// The reference to a hold that a guard keeps.
#pragma once

#include "redislock/export.hpp"
#include "redislock/fwd.hpp"

#include <boost/smart_ptr/intrusive_ptr.hpp>

namespace redislock::detail {

/// A shared reference to a hold, which counts its references itself.
using HoldRef = boost::intrusive_ptr<Hold>;
REDISLOCK_EXPORT void intrusive_ptr_add_ref(Hold* hold) noexcept;
REDISLOCK_EXPORT void intrusive_ptr_release(Hold* hold) noexcept;

} // namespace redislock::detail
