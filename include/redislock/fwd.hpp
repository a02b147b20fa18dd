/// @file
/// Forward declarations of the public types.
#pragma once

#include "redislock/requirements.hpp"

namespace redislock {

class Client;
class FairLock;
class FencedLock;
class CountDownLatch;
class GroupGuard;
class GroupLock;
class Lease;
class Lock;
class LockError;
class LockGuard;
class LockMonitor;
class LoggingObserver;
class MultiLock;
class NonReentrantLock;
class Observer;
class ReadLock;
class ReadWriteLock;
class Permit;
class PermitExpirableSemaphore;
class RedisLock;
class RetryPolicy;
class Semaphore;
class RedLock;
class SegmentedLock;
class SpinLock;
class Wait;
class WriteLock;
struct BootClock;
struct Config;
struct Endpoint;
struct LockEvent;
struct LockHolder;
struct LockReport;
enum class Errc;
enum class Cause;
enum class Unlocked;

namespace detail {
class Engine;
struct Acquired;
class NamedCounter;
struct CounterCalls;
class GroupHold;
class GroupState;
struct Hold;
struct LockAccess;
struct NamedLock;
struct PermitHold;
} // namespace detail

} // namespace redislock
