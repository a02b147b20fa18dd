/// @file
/// Everything: the one header that programs include.
#pragma once

#include "redislock/async_execute_with_lock.hpp"
#include "redislock/cancel_on_loss.hpp"
#include "redislock/client.hpp"
#include "redislock/clock.hpp"
#include "redislock/config.hpp"
#include "redislock/endpoint.hpp"
#include "redislock/error.hpp"
#include "redislock/execute_with_lock.hpp"
#include "redislock/fwd.hpp"
#include "redislock/handler.hpp"
#include "redislock/hold_ref.hpp"
#include "redislock/identity.hpp"
#include "redislock/lease_time.hpp"
#include "redislock/lock_guard.hpp"
#include "redislock/observer.hpp"
#include "redislock/random.hpp"
#include "redislock/redis_lock.hpp"
#include "redislock/stop_at.hpp"
#include "redislock/unlocked.hpp"
#include "redislock/version.hpp"
