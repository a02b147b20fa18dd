/// @file
/// Everything: the one header that programs include.
#pragma once

#include "redislock/requirements.hpp"

#ifdef REDISLOCK_REQUIREMENTS_MET // otherwise its error is the only one

#include "redislock/async_execute_with_lock.hpp"
#include "redislock/cancel_on_loss.hpp"
#include "redislock/client.hpp"
#include "redislock/clock.hpp"
#include "redislock/config.hpp"
#include "redislock/count_down_latch.hpp"
#include "redislock/endpoint.hpp"
#include "redislock/error.hpp"
#include "redislock/execute_with_lock.hpp"
#include "redislock/export.hpp"
#include "redislock/fair_lock.hpp"
#include "redislock/fenced_lock.hpp"
#include "redislock/fwd.hpp"
#include "redislock/group_guard.hpp"
#include "redislock/group_lock.hpp"
#include "redislock/handler.hpp"
#include "redislock/hold_ref.hpp"
#include "redislock/identity.hpp"
#include "redislock/initiate.hpp"
#include "redislock/lease_time.hpp"
#include "redislock/lock.hpp"
#include "redislock/lock_calls.hpp"
#include "redislock/lock_guard.hpp"
#include "redislock/multi_lock.hpp"
#include "redislock/non_reentrant_lock.hpp"
#include "redislock/observer.hpp"
#include "redislock/permit.hpp"
#include "redislock/permit_expirable_semaphore.hpp"
#include "redislock/random.hpp"
#include "redislock/read_write_lock.hpp"
#include "redislock/red_lock.hpp"
#include "redislock/redis_lock.hpp"
#include "redislock/retry_policy.hpp"
#include "redislock/segmented_lock.hpp"
#include "redislock/semaphore.hpp"
#include "redislock/spin_lock.hpp"
#include "redislock/stop_at.hpp"
#include "redislock/unlocked.hpp"
#include "redislock/version.hpp"

#endif
