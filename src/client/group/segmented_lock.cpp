#include "redislock/segmented_lock.hpp"

#include "redislock/multi_lock.hpp"

namespace redislock {

MultiLock SegmentedLock::all() const
{
    return MultiLock(locks_);
}

} // namespace redislock
